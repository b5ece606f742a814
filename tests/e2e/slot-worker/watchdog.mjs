#!/usr/bin/env node
// The watchdog of the document of slot workers, one round of it.
import { readAllHeartbeats, updateHeartbeat } from './slot-heartbeats.mjs';

async function detectStaleWorkers() {
  const heartbeats = await readAllHeartbeats();
  const now = Date.now();
  const staleThreshold = 90 * 1000; // 90 seconds

  for (const [slot, heartbeat] of Object.entries(heartbeats.workers)) {
    const age = now - heartbeat.lastUpdate;

    if (age > staleThreshold && heartbeat.status !== 'offline') {
      console.warn(`Stale worker detected: ${slot} (${age}ms old)`);

      // Mark as offline
      await updateHeartbeat({
        ...heartbeat,
        status: 'offline',
        metadata: {
          ...heartbeat.metadata,
          offlineReason: 'stale-heartbeat',
          detectedAt: now
        }
      });

      // Reset any in-progress task
      if (heartbeat.task) {
        await fetch(`http://localhost:8787/api/tasks/${heartbeat.task}`, {
          method: 'PATCH',
          headers: { 'Content-Type': 'application/json' },
          body: JSON.stringify({ status: 'todo' })
        });
      }
    }
  }
}

await detectStaleWorkers();
