// The heartbeats of slot workers, for worker.mjs and watchdog.mjs: what their document calls the file of heartbeats is
// asked of the server, which alone writes it.
const HEARTBEATS = 'http://localhost:8787/api/heartbeats';

export const sleep = ms => new Promise(resolve => setTimeout(resolve, ms));

export async function fetchWithRetry(url, options, maxRetries = 3) {
  let lastError;

  for (let attempt = 0; attempt < maxRetries; attempt++) {
    try {
      const response = await fetch(url, options);
      if (response.ok) return response;

      // Don't retry on 4xx errors (client errors)
      if (response.status >= 400 && response.status < 500) {
        throw new Error(`Client error: ${response.status}`);
      }

    } catch (error) {
      lastError = error;
      const backoff = Math.pow(2, attempt) * 1000; // 1s, 2s, 4s
      console.warn(`Retry ${attempt + 1}/${maxRetries} after ${backoff}ms`);
      await sleep(backoff);
    }
  }

  throw lastError;
}

export async function updateHeartbeat(heartbeat) {
  await fetchWithRetry(HEARTBEATS, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify(heartbeat)
  });
}

export async function readAllHeartbeats() {
  const response = await fetchWithRetry(HEARTBEATS);
  return response.json();
}

export async function readHeartbeat(slotId) {
  return (await readAllHeartbeats()).workers[slotId];
}
