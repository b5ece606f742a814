// For the tests: the programs beside this file run as they are, against a server on another port, with time that goes
// by STINT_HURRY times as fast where they sleep.
const { STINT_URL, STINT_HURRY } = process.env;
const { fetch, setTimeout } = globalThis;

globalThis.fetch = (url, options) => fetch(String(url).replace('http://localhost:8787', STINT_URL), options);
globalThis.setTimeout = (call, ms, ...args) => setTimeout(call, ms / Number(STINT_HURRY || 1), ...args);
