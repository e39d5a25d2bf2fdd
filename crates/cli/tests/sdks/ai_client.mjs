// ai_client.mjs URL KEY: asks a server with the AI SDK of Vercel and three of its providers, and prints what worked.

import { deepStrictEqual as equal, ok, rejects } from 'node:assert';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

// The packages are in the folder that this is started in.
const installed = createRequire(`${process.cwd()}/`);
const load = async (name) => import(pathToFileURL(installed.resolve(name)));
const { generateText, streamText, tool, jsonSchema, isStepCount, stepCountIs, Output } = await load('ai');
const { createOpenAI } = await load('@ai-sdk/openai');
const { createOpenAICompatible } = await load('@ai-sdk/openai-compatible');
const { createAnthropic } = await load('@ai-sdk/anthropic');

const [url, apiKey] = process.argv.slice(2);
const baseURL = `${url}/v1`;
const openai = createOpenAI({ baseURL, apiKey });
const models = {
  'openai responses': openai.responses('scripted/test'),
  'openai chat': openai.chat('scripted/test'),
  'openai-compatible': createOpenAICompatible({ name: 'antiphon', baseURL, apiKey, includeUsage: true, supportsStructuredOutputs: true })('scripted/test'),
  anthropic: createAnthropic({ baseURL, apiKey })('claude-test'),
};

const weather = tool({
  description: 'Tells.',
  inputSchema: jsonSchema({ type: 'object', properties: { in: { type: 'string' } }, required: ['in'], additionalProperties: false }),
  execute: async (input) => `sun in ${input.in}`,
});
const steps = (isStepCount ?? stepCountIs)(3);

for (const [name, model] of Object.entries(models)) {
  const common = { model, maxRetries: 0, maxOutputTokens: 2000 };
  const answer = await generateText({ ...common, prompt: 'hello', instructions: 'Be brief.' });
  equal([answer.text, answer.finishReason], ['Turn 0: hello', 'stop']);
  ok(answer.usage.outputTokens > 0, name);

  const stream = streamText({ ...common, prompt: 'hello' });
  let text = '';
  for await (const part of stream.textStream) text += part;
  equal(text, 'Turn 0: hello');
  equal(await stream.finishReason, 'stop');

  const ran = await generateText({ ...common, prompt: 'weather', tools: { weather }, stopWhen: steps });
  equal([ran.text, ran.steps.length], ['Then: sun in Oslo', 2]);
  const streamed = streamText({ ...common, prompt: 'weather', tools: { weather }, stopWhen: steps });
  const parts = [];
  for await (const part of streamed.fullStream ?? streamed.stream) parts.push(part.type);
  equal(await streamed.text, 'Then: sun in Oslo');
  equal(parts.filter((part) => part === 'tool-result').length, 2);
  ok(!parts.includes('error'), `${name}: ${parts}`);

  const schema = jsonSchema({ type: 'object', properties: { a: { type: 'number' } }, required: ['a'], additionalProperties: false });
  const parsed = await generateText({ ...common, prompt: 'deliver', output: Output.object({ schema }) });
  equal(parsed.output, { a: 1 });
  await rejects(generateText({ ...common, prompt: 'busy' }), (error) => error.statusCode === 429 && error.isRetryable, name);
  console.log(name);
}
