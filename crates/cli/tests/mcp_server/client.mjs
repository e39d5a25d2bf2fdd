// The official client of npm against Antiphon's MCP server.
//
//     client.mjs stdio ANTIPHON
//     client.mjs http URL TOKEN

import assert from 'node:assert/strict';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

const sdk = path.join(process.env.MCP_MODULES, '@modelcontextprotocol/sdk/dist/esm');
const load = (file) => import(pathToFileURL(path.join(sdk, file)));
const { Client } = await load('client/index.js');
const { StdioClientTransport } = await load('client/stdio.js');
const { StreamableHTTPClientTransport } = await load('client/streamableHttp.js');
const { ElicitRequestSchema, ResourceUpdatedNotificationSchema } = await load('types.js');

const [kind, place, token] = process.argv.slice(2);
const transport = kind === 'stdio'
  ? new StdioClientTransport({ command: place, args: ['mcp', 'serve'] })
  : new StreamableHTTPClientTransport(new URL(place), {
      requestInit: { headers: { Authorization: `Bearer ${token}` } },
    });

const client = new Client({ name: 'test', version: '1' }, { capabilities: { elicitation: {} } });
const asked = [];
client.setRequestHandler(ElicitRequestSchema, async (request) => {
  asked.push(request.params.message);
  return { action: 'accept', content: { decision: 'allow_once' } };
});
await client.connect(transport);
const { tools } = await client.listTools();
assert(tools.some((tool) => tool.name === 'helper') && tools.some((tool) => tool.name === 'task_get'));

const reports = [];
const call = (message, options) =>
  client.callTool({ name: 'helper', arguments: { message } }, undefined, options);
const result = await call('hello');
assert.equal(result.content[0].text, 'You said hello');
assert.equal(result.structuredContent.status, 'completed');

// Over stdio, the client drops reports that it reads together with the answer: here a question is between them.
const approved = await call('ask', { onprogress: (report) => reports.push(report) });
assert(reports.length > 0);
assert.equal(approved.structuredContent.status, 'completed');
assert.equal(asked.length, 1);
assert(asked[0].includes('touch asked.txt'));

// A call that is aborted cancels its task; a subscription tells of it.
let updated;
const update = new Promise((resolve) => { updated = resolve; });
client.setNotificationHandler(ResourceUpdatedNotificationSchema, (note) => updated(note.params.uri));
const abort = new AbortController();
let begun;
const running = new Promise((resolve) => { begun = resolve; });
const stalled = call('stall', { signal: abort.signal, onprogress: (report) => {
  if (report.message.startsWith('task ')) begun(report.message.slice(5));
} });
const task = await running;
await client.subscribeResource({ uri: `antiphon://tasks/${task}` });
abort.abort();
await assert.rejects(stalled);
assert.equal(await update, `antiphon://tasks/${task}`);
const waited = await client.callTool({ name: 'task_wait', arguments: { taskId: task } });
assert.equal(waited.structuredContent.status, 'canceled');

const { contents } = await client.readResource({ uri: `antiphon://tasks/${task}` });
assert(contents[0].text.includes('canceled'));
const prompt = await client.getPrompt({ name: 'helper', arguments: { message: 'Look.' } });
assert(prompt.messages[0].content.text.includes('Look.'));
await client.close();
console.log('ok');
