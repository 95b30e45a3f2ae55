// Speaks to a node with the official client; writes one line of JSON for each step.
import Anthropic from "@anthropic-ai/sdk";

const base = process.env.PEER_BASE;
const key = process.env.PEER_KEY;
const client = new Anthropic({ baseURL: base, apiKey: key, authToken: null, maxRetries: 0 });
const say = (step, value) => console.log(JSON.stringify({ step, ...value }));
const ask = (content, more = {}) => ({ model: "homeagent", max_tokens: 1000, system: "Be brief.", messages: [{ role: "user", content }], ...more });

async function fails(step, make) {
  try {
    await make();
    say(step, { error: null });
  } catch (e) {
    say(step, {
      class: e.constructor.name, status: e.status ?? null, type: e.error?.error?.type ?? e.type ?? null, message: e.message,
      request: e.requestID ?? null, error: true,
    });
  }
}

const steps = {
  async whole() {
    const r = await client.messages.create(ask("say it whole"));
    say("whole", { text: r.content[0].text, blocks: r.content.length, stop: r.stop_reason, out: r.usage.output_tokens, type: r.type, role: r.role });
  },
  async stream() {
    const names = [];
    const s = await client.messages.create(ask([{ type: "text", text: "say it in pieces" }], { stream: true }));
    for await (const e of s) if (e.type !== "ping" && names.at(-1) !== e.type) names.push(e.type);
    say("stream", { names });
  },
  async helper() {
    const s = client.messages.stream(ask("say it in pieces"));
    let pieces = 0;
    s.on("text", () => pieces++);
    const r = await s.finalMessage();
    say("helper", { text: await s.finalText(), pieces, stop: r.stop_reason, out: r.usage.output_tokens });
  },
  async errors() {
    await fails("tools", () => client.messages.create(ask("hi", { tools: [{ name: "f", input_schema: { type: "object" } }] })));
    await fails("image", () => client.messages.create(ask([{ type: "image", source: { type: "base64", media_type: "image/png", data: "aa" } }])));
    await fails("toolResult", () => client.messages.create(ask([{ type: "tool_result", tool_use_id: "c", content: "42" }])));
    await fails("empty", () => client.messages.create({ ...ask("hi"), messages: [] }));
    await fails("model", () => client.messages.create({ ...ask("hi"), model: "claude-opus" }));
    await fails("route", () => client.messages.countTokens({ model: "homeagent", messages: [{ role: "user", content: "hi" }] }));
    const stranger = new Anthropic({ baseURL: base, apiKey: "sk-wrong", authToken: null, maxRetries: 0 });
    await fails("key", () => stranger.messages.create(ask("hi")));
    const bearer = new Anthropic({ baseURL: base, apiKey: null, authToken: key, maxRetries: 0 });
    await fails("bearer", () => bearer.messages.create(ask("say it whole")));
    const eager = new Anthropic({ baseURL: base, apiKey: key, authToken: null, maxRetries: 3 });
    await fails("broken", () => eager.messages.create(ask("break off")));
    await fails("brokenStream", async () => {
      for await (const _ of await eager.messages.create(ask("break off", { stream: true })));
    });
    await fails("brokenHelper", () => eager.messages.stream(ask("break off")).finalMessage());
  },
  async full() {
    await fails("full", () => client.messages.create(ask("one too many")));
  },
  async abortStream() {
    let text = "";
    const s = client.messages.stream(ask("talk until I leave"));
    s.on("text", (t) => {
      text += t;
      s.abort();
    });
    try {
      await s.finalMessage();
      say("abortStream", { text, ended: true });
    } catch (e) {
      say("abortStream", { text, class: e.constructor.name });
    }
  },
};

for (const name of process.env.PEER_STEPS.split(",")) await steps[name]();
process.exit(0);
