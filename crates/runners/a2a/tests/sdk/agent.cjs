// An agent made with the SDK of A2A for Node. Usage: agent.cjs FOLDER PORT BINDING. Prints the address of its card.
//
// FOLDER holds node_modules. `ask` asks for a color and waits, `hang` works until it is canceled, `fail` fails, anything else is echoed
// in chunks.

const [folder, port, binding] = process.argv.slice(2);
const load = require("node:module").createRequire(`${folder}/package.json`);
const express = load("express");
const { AgentCard, TaskState, Role } = load("@a2a-js/sdk");
const { AgentEvent, DefaultRequestHandler, InMemoryTaskStore } = load("@a2a-js/sdk/server");
const { UserBuilder, agentCardHandler, jsonRpcHandler, restHandler } = load("@a2a-js/sdk/server/express");

const url = `http://127.0.0.1:${port}`;
const text = (value) => ({ content: { $case: "text", value }, metadata: undefined, filename: "", mediaType: "" });

class Agent {
  contexts = new Map();

  async execute({ taskId, contextId, userMessage, task }, bus) {
    this.contexts.set(taskId, contextId);
    const words = userMessage.parts.map((part) => part.content?.value).join("");
    const say = (value) => ({
      messageId: crypto.randomUUID(), role: Role.ROLE_AGENT, parts: [text(value)], taskId, contextId,
      metadata: undefined, extensions: [], referenceTaskIds: [],
    });
    const update = (state, message) =>
      bus.publish(AgentEvent.statusUpdate({
        taskId, contextId, metadata: undefined, status: { state, message, timestamp: new Date().toISOString() },
      }));
    const chunk = (value, append, lastChunk) =>
      bus.publish(AgentEvent.artifactUpdate({
        taskId, contextId, append, lastChunk, metadata: undefined,
        artifact: { artifactId: "a", name: "result", description: "", parts: [text(value)], metadata: undefined, extensions: [] },
      }));
    const status = { state: TaskState.TASK_STATE_SUBMITTED, message: undefined, timestamp: new Date().toISOString() };
    bus.publish(AgentEvent.task(task ?? { id: taskId, contextId, status, history: [userMessage], artifacts: [], metadata: undefined }));
    if (words === "ask") {
      update(TaskState.TASK_STATE_INPUT_REQUIRED, say("Which color?"));
      bus.finished();
      return;
    }
    update(TaskState.TASK_STATE_WORKING, say("On it."));
    if (words === "hang") {
      return;
    }
    if (words === "fail") {
      update(TaskState.TASK_STATE_FAILED, say("It broke."));
    } else {
      chunk("You ", false, false);
      chunk(`said ${words}`, true, true);
      update(TaskState.TASK_STATE_COMPLETED, undefined);
    }
    bus.finished();
  }

  async cancelTask(taskId, bus) {
    const status = { state: TaskState.TASK_STATE_CANCELED, message: undefined, timestamp: new Date().toISOString() };
    bus.publish(AgentEvent.statusUpdate({ taskId, contextId: this.contexts.get(taskId), metadata: undefined, status }));
    bus.finished();
  }
}

const card = AgentCard.fromJSON({
  name: "sdk", description: "Echoes.", version: "1",
  supportedInterfaces: [{ url: `${url}/a2a`, protocolBinding: binding, protocolVersion: "1.0" }],
  capabilities: { streaming: true },
  defaultInputModes: ["text/plain"], defaultOutputModes: ["text/plain"],
  skills: [{ id: "echo", name: "Echo", description: "Echoes.", tags: ["echo"] }],
});
const requestHandler = new DefaultRequestHandler(card, new InMemoryTaskStore(), new Agent());
const handler = binding === "JSONRPC" ? jsonRpcHandler : restHandler;
const app = express();
app.use("/.well-known/agent-card.json", agentCardHandler({ agentCardProvider: requestHandler }));
app.use("/a2a", handler({ requestHandler, userBuilder: UserBuilder.noAuthentication }));
app.listen(Number(port), "127.0.0.1", () => console.log(url));
