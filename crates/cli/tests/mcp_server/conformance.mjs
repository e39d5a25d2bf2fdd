// Runs the server scenarios of a requirement set of the MCP conformance suite against a server that needs a token, and
// writes the failing checks to FOLDER/failing.txt.
//
//     conformance.mjs ADDRESS TOKEN REVISION SUITE FOLDER
//
// The suite sends no credentials: its requests go through a proxy here that adds them and changes nothing else.

import { spawn } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import path from 'node:path';

const [address, token, revision, suite, folder] = process.argv.slice(2);
const proxy = http.createServer((request, response) => {
  const own = `127.0.0.1:${proxy.address().port}`;
  const headers = { ...request.headers, authorization: `Bearer ${token}` };
  // Only the name of the proxy becomes the name of the server: foreign ones are what a scenario tests.
  for (const name of ['host', 'origin']) {
    if (headers[name]) headers[name] = headers[name].replace(own, address);
  }
  const [host, port] = address.split(':');
  const options = { host, port, method: request.method, path: request.url, headers };
  const forward = http.request(options, (answer) => {
    response.writeHead(answer.statusCode, answer.headers);
    answer.pipe(response);
  });
  forward.on('error', () => response.destroy());
  response.on('close', () => forward.destroy());
  request.pipe(forward);
});
await new Promise((resolve) => proxy.listen(0, '127.0.0.1', resolve));

const results = path.join(folder, 'results');
const url = `http://127.0.0.1:${proxy.address().port}/mcp`;
const args = [suite, 'server', '--url', url, '--requirements', revision, '-o', results, '--timeout', '10000'];
const run = spawn(process.execPath, args, { stdio: ['ignore', 'inherit', 'inherit'] });
await new Promise((resolve) => run.on('exit', resolve));

const failing = [];
let passed = 0;
for (const scenario of readdirSync(results)) {
  const name = scenario.replace(/^server-/, '').replace(/-\d{4}-\d\d-\d\dT.*$/, '');
  for (const check of JSON.parse(readFileSync(path.join(results, scenario, 'checks.json')))) {
    if (check.status === 'FAILURE') failing.push(`${name}: ${check.id}`);
    else if (check.status === 'SUCCESS') passed += 1;
  }
}
writeFileSync(path.join(folder, 'failing.txt'), `${[...new Set(failing)].sort().join('\n')}\n`);
console.log(`${passed} checks passed, ${failing.length} failed`);
process.exit(0);
