// The SDK of A2A for Node as a client. Usage: client.cjs FOLDER SERVER TOKEN BINDING. Prints the steps that it did.
//
// FOLDER holds node_modules. The agent is `helper`: it echoes what it is told, `stall` never ends, `act` needs an approval.

const assert = require("node:assert");
const [folder, server, token, binding] = process.argv.slice(2);
const load = require("node:module").createRequire(`${folder}/package.json`);
const { Role, TaskState } = load("@a2a-js/sdk");
const { ClientFactory, ClientFactoryOptions, DefaultAgentCardResolver, JsonRpcTransportFactory, RestTransportFactory } =
  load("@a2a-js/sdk/client");

const fetchImpl = (url, init = {}) => {
  const headers = new Headers(init.headers);
  headers.set("Authorization", `Bearer ${token}`);
  return fetch(url, { ...init, headers });
};
const text = (value) => ({ content: { $case: "text", value }, metadata: undefined, filename: "", mediaType: "" });
const data = (value) => ({ content: { $case: "data", value }, metadata: undefined, filename: "", mediaType: "" });
const request = (messageId, part, taskId = "") => ({
  tenant: "", metadata: undefined, configuration: undefined,
  message: {
    messageId, role: Role.ROLE_USER, parts: [part], taskId, contextId: "", metadata: undefined, extensions: [], referenceTaskIds: [],
  },
});

async function collect(stream) {
  const events = [];
  for await (const event of stream) {
    events.push(event.payload);
  }
  return events;
}

const statusOf = (event) => event.value.status?.state;

// A task that ends early is the only event.
const artifactOf = (event) => (event.$case === "task" ? event.value.artifacts[0] : event.value.artifact);

async function main() {
  const transports = [new JsonRpcTransportFactory({ fetchImpl }), new RestTransportFactory({ fetchImpl })];
  const options = ClientFactoryOptions.createFrom(ClientFactoryOptions.default, {
    transports, preferredTransports: [binding], cardResolver: new DefaultAgentCardResolver({ fetchImpl }),
  });
  const factory = new ClientFactory(options);
  const client = await factory.createFromUrl(server, "/a2a/helper/.well-known/agent-card.json");
  const id = (number) => `node-${binding}-${number}`;

  const events = await collect(client.sendMessageStream(request(id(1), text("hi"))));
  assert.equal(events[0].$case, "task");
  const taskId = events[0].value.id;
  assert.equal(statusOf(events.at(-1)), TaskState.TASK_STATE_COMPLETED);
  const artifact = events.map(artifactOf).filter((found) => found).at(-1);
  assert.equal(artifact.parts[0].content.value, "You said hi");
  console.log("stream");

  const again = await collect(client.sendMessageStream(request(id(1), text("hi"))));
  assert.equal(again[0].value.id, taskId);
  console.log("once");

  const task = await client.getTask({ id: taskId, historyLength: 10, tenant: "" });
  assert.equal(task.artifacts[0].parts[0].content.value, "You said hi");
  assert.equal(task.history[0].parts[0].content.value, "hi");
  console.log("get");

  const stalled = client.sendMessageStream(request(id(2), text("stall")));
  const stalledId = (await stalled.next()).value.payload.value.id;
  const following = client.resubscribeTask({ id: stalledId, tenant: "" });
  assert.equal((await following.next()).value.payload.value.id, stalledId);
  const canceled = await client.cancelTask({ id: stalledId, tenant: "", metadata: undefined });
  assert.equal(canceled.status.state, TaskState.TASK_STATE_CANCELED);
  assert.equal(statusOf((await collect(following)).at(-1)), TaskState.TASK_STATE_CANCELED);
  await collect(stalled);
  console.log("subscribe and cancel");

  const asked = await collect(client.sendMessageStream(request(id(3), text("act"))));
  const status = asked.at(-1).value.status;
  assert.equal(status.state, TaskState.TASK_STATE_INPUT_REQUIRED);
  const approval = status.message.parts.map((part) => part.content).find((content) => content.$case === "data").value.approval;
  const decision = data({ approval: { id: approval.id, decision: "allow_once" } });
  const decided = await collect(client.sendMessageStream(request(id(4), decision, asked[0].value.id)));
  assert.equal(statusOf(decided.at(-1)), TaskState.TASK_STATE_COMPLETED);
  console.log("approval");

  await assert.rejects(client.getTask({ id: "nothing", tenant: "" }), /TaskNotFoundError/);
  await assert.rejects(client.cancelTask({ id: taskId, tenant: "", metadata: undefined }), /has ended/);
  console.log("errors");

  assert(client.agentCard.capabilities.extendedAgentCard);
  const listed = client.agentCard;
  const extended = await client.getAgentCard();
  assert(extended !== listed && extended.name === "helper");
  console.log("extended card");
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
