// Speaks to a node with the official client; writes one line of JSON for each step.
import OpenAI from "openai";

const base = process.env.PEER_BASE;
const key = process.env.PEER_KEY;
const client = new OpenAI({ baseURL: base + "/v1", apiKey: key, maxRetries: 0 });
const say = (step, value) => console.log(JSON.stringify({ step, ...value }));
const ask = (content, more = {}) => ({ model: "homeagent", messages: [{ role: "user", content }], ...more });

async function fails(step, make) {
  try {
    await make();
    say(step, { error: null });
  } catch (e) {
    say(step, {
      class: e.constructor.name, status: e.status ?? null, code: e.code ?? null, type: e.type ?? null, param: e.param ?? null,
      message: e.message, request: e.requestID ?? null, error: true,
    });
  }
}

const steps = {
  async models() {
    const ids = [];
    for await (const m of client.models.list()) ids.push(m.id);
    say("models", { ids });
  },
  async whole() {
    const r = await client.chat.completions.create(ask("say it whole"));
    say("whole", { text: r.choices[0].message.content, finish: r.choices[0].finish_reason, total: r.usage.total_tokens, id: r.id });
  },
  async stream() {
    const s = await client.chat.completions.create(ask("say it in pieces", { stream: true, stream_options: { include_usage: true } }));
    let text = "", pieces = 0, finish = null, total = 0;
    for await (const c of s) {
      if (c.choices[0]?.delta?.content) (text += c.choices[0].delta.content), pieces++;
      finish = c.choices[0]?.finish_reason ?? finish;
      total = c.usage?.total_tokens ?? total;
    }
    say("stream", { text, pieces, finish, total });
  },
  async helper() {
    // The client's own assembly of a stream.
    const r = client.chat.completions.stream(ask("say it in pieces"));
    say("helper", { text: await r.finalContent() });
  },
  async agentTools() {
    const r = await client.chat.completions.create(ask("use your own tool"));
    say("agentTools", { text: r.choices[0].message.content });
  },
  async errors() {
    const tools = [{ type: "function", function: { name: "f", parameters: { type: "object", properties: {} } } }];
    await fails("tools", () => client.chat.completions.create(ask("hi", { tools })));
    await fails("toolsStreamed", () => client.chat.completions.create(ask("hi", { tools, stream: true })));
    await fails("toolResult", () => client.chat.completions.create({ model: "homeagent", messages: [
      { role: "user", content: "hi" }, { role: "tool", tool_call_id: "c", content: "42" }] }));
    await fails("n", () => client.chat.completions.create(ask("hi", { n: 2 })));
    await fails("format", () => client.chat.completions.create(ask("hi", { response_format: { type: "json_object" } })));
    await fails("empty", () => client.chat.completions.create({ model: "homeagent", messages: [] }));
    await fails("model", () => client.chat.completions.create({ ...ask("hi"), model: "gpt-4o" }));
    await fails("oddModel", () => client.chat.completions.create({ ...ask("hi"), model: "gpt-4.1" }));
    await fails("route", () => client.embeddings.create({ model: "homeagent", input: "hi" }));
    const stranger = new OpenAI({ baseURL: base + "/v1", apiKey: "sk-wrong", maxRetries: 0 });
    await fails("key", () => stranger.chat.completions.create(ask("hi")));
    await fails("keyModels", () => stranger.models.list());
    // Retries are on: what the agent has heard may not be said again by the client.
    const eager = new OpenAI({ baseURL: base + "/v1", apiKey: key, maxRetries: 3 });
    await fails("broken", () => eager.chat.completions.create(ask("break off")));
    await fails("brokenStream", async () => {
      let text = "";
      const s = await eager.chat.completions.create(ask("break off", { stream: true }));
      for await (const c of s) text += c.choices[0]?.delta?.content ?? "";
    });
  },
  async full() {
    await fails("full", () => client.chat.completions.create(ask("one too many")));
  },
  async abortStream() {
    const c = new AbortController();
    let text = "";
    try {
      const s = await client.chat.completions.create(ask("talk until I leave", { stream: true }), { signal: c.signal });
      for await (const x of s) {
        text += x.choices[0]?.delta?.content ?? "";
        if (text) c.abort();
      }
      say("abortStream", { text, ended: true });
    } catch (e) {
      say("abortStream", { text, class: e.constructor.name });
    }
  },
  async abortWhole() {
    // The vendor holds its answer; the other side of the test tells by a line that it has been asked.
    const c = new AbortController();
    process.stdin.once("data", () => c.abort());
    await fails("abortWhole", () => client.chat.completions.create(ask("think long"), { signal: c.signal }));
  },
};

for (const name of process.env.PEER_STEPS.split(",")) await steps[name]();
process.exit(0);
