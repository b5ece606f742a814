#!/usr/bin/env node
// A slot worker as the document of slot workers shows it, function by function. It knows nothing of stint: no token, no
// lease, no fence. What the document names and does not show (sleep, killSession, getVersion …) is written as it says.
import { randomUUID } from 'node:crypto';
import { fetchWithRetry, readHeartbeat, sleep, updateHeartbeat } from './slot-heartbeats.mjs';

const SLOT_ID = process.argv[2] || process.env.SLOT_ID;
if (!SLOT_ID) {
  console.error('Usage: worker.mjs <slot-id>');
  process.exit(1);
}

let shutdown = false;
let currentTask = null;
let restartCount = 0;

const getVersion = () => '1.0.0';
const getRestartCount = async () => restartCount;
const incrementRestartCount = async () => { restartCount += 1; };
const getCurrentTask = async () => currentTask;

// ---- 2.1 Startup

async function startup(slotId) {
  // 1. Initialize worker state
  const startedAt = Date.now();

  // 2. Write initial heartbeat
  await updateHeartbeat({
    slot: slotId,
    status: 'idle',
    task: null,
    taskTitle: null,
    sessionId: null,
    lastUpdate: Date.now(),
    startedAt: startedAt,
    metadata: {
      workerPid: process.pid,
      workerVersion: getVersion(),
      restartCount: await getRestartCount(slotId)
    }
  });

  // 3. Set up signal handlers for graceful shutdown
  process.on('SIGTERM', () => gracefulShutdown(slotId));
  process.on('SIGINT', () => gracefulShutdown(slotId));

  // 4. Start main loop
  console.log(`[${slotId}] Worker started, entering main loop`);
}

// ---- 2.2 Task Detection

function filterTasksForSlot(tasks, slotId) {
  return tasks.filter(task => {
    // 1. Must be assigned to this slot
    if (task.owner !== slotId) return false;

    // 2. Must be in "todo" status
    if (task.status !== 'todo') return false;

    return true;
  });
}

function selectNextTask(tasks, slotId) {
  const eligibleTasks = filterTasksForSlot(tasks, slotId);

  if (eligibleTasks.length === 0) return null;

  // Sort by priority (descending), then by creation time (ascending)
  eligibleTasks.sort((a, b) => {
    const priorityDiff = (b.priority || 0) - (a.priority || 0);
    if (priorityDiff !== 0) return priorityDiff;

    return a.createdAt - b.createdAt; // FIFO as tiebreaker
  });

  return eligibleTasks[0];
}

async function pollForTask(slotId) {
  try {
    // Poll every 30 seconds
    const response = await fetch('http://localhost:8787/api/tasks');
    const tasks = await response.json();

    return selectNextTask(tasks, slotId);
  } catch (error) {
    console.error(`[${slotId}] Failed to poll tasks:`, error);
    return null;
  }
}

// ---- 2.3 Task Pickup

async function pickupTask(slotId, task) {
  // 1. Update heartbeat to "working"
  const sessionId = `agent:main:worker-${slotId}:${randomUUID()}`;

  await updateHeartbeat({
    slot: slotId,
    status: 'working',
    task: task.id,
    taskTitle: task.title,
    sessionId: sessionId,
    lastUpdate: Date.now(),
    metadata: {
      taskStartedAt: Date.now()
    }
  });

  // 2. Update task status to "in-progress"
  await fetch(`http://localhost:8787/api/tasks/${task.id}`, {
    method: 'PATCH',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ status: 'in-progress' })
  });

  // 3. Spawn Claude session
  await spawnSession(sessionId, task);

  // 4. Monitor session
  await monitorWithTimeout(slotId, sessionId, task);
}

// ---- 2.4 Session Monitoring

async function monitorSession(slotId, sessionId, task) {
  const pollInterval = 15000; // 15 seconds
  const maxDuration = 30 * 60 * 1000; // 30 minutes max per task
  const startTime = Date.now();

  while (true) {
    // Update heartbeat to show liveness
    await updateHeartbeat({
      slot: slotId,
      status: 'working',
      task: task.id,
      taskTitle: task.title,
      sessionId: sessionId,
      lastUpdate: Date.now()
    });

    // Check session status
    const status = await getSessionStatus(sessionId);

    if (status === 'complete') {
      console.log(`[${slotId}] Task ${task.id} completed successfully`);
      await completeTask(slotId, task.id, 'done');
      break;
    }

    if (status === 'failed') {
      console.error(`[${slotId}] Task ${task.id} failed`);
      await completeTask(slotId, task.id, 'blocked');
      break;
    }

    // Check for timeout
    if (Date.now() - startTime > maxDuration) {
      console.error(`[${slotId}] Task ${task.id} timed out`);
      await killSession(sessionId);
      await completeTask(slotId, task.id, 'blocked');
      break;
    }

    // Wait before next poll
    await sleep(pollInterval);
  }
}

// ---- 2.5 Task Completion

async function completeTask(slotId, taskId, finalStatus) {
  // 1. Update task status
  await fetch(`http://localhost:8787/api/tasks/${taskId}`, {
    method: 'PATCH',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ status: finalStatus })
  });

  // 2. Reset heartbeat to idle
  await updateHeartbeat({
    slot: slotId,
    status: 'idle',
    task: null,
    taskTitle: null,
    sessionId: null,
    lastUpdate: Date.now()
  });

  console.log(`[${slotId}] Returned to idle state`);
}

// ---- 2.6 Graceful Shutdown

async function waitForTaskOrTimeout(task, timeout) {
  const until = Date.now() + timeout;
  while (currentTask === task && Date.now() < until) await sleep(1000);
}

async function gracefulShutdown(slotId) {
  console.log(`[${slotId}] Graceful shutdown initiated`);

  // 1. Stop accepting new tasks
  shutdown = true;

  // 2. Wait for current task to complete (with timeout)
  const task = await getCurrentTask(slotId);
  if (task) {
    console.log(`[${slotId}] Waiting for current task to complete...`);
    await waitForTaskOrTimeout(task, 5 * 60 * 1000); // 5 min max
  }

  // 3. Update heartbeat to offline
  await updateHeartbeat({
    slot: slotId,
    status: 'offline',
    task: null,
    taskTitle: null,
    sessionId: null,
    lastUpdate: Date.now(),
    metadata: {
      offlineReason: 'graceful-shutdown'
    }
  });

  // 4. Exit
  process.exit(0);
}

// ---- 4 Session Spawn Integration

async function spawnSession(sessionId, task) {
  const response = await fetch('http://localhost:8787/api/sessions/spawn', {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({
      sessionLabel: sessionId,
      channel: 'internal', // or 'telegram' if notifications needed
      prompt: buildPromptForTask(task),
      model: task.model || 'anthropic/claude-sonnet-4-5',
      thinking: 'low',
      autoStart: true
    })
  });

  if (!response.ok) {
    throw new Error(`Failed to spawn session: ${response.statusText}`);
  }

  const result = await response.json();
  return result;
}

function buildPromptForTask(task) {
  return `You are a worker agent assigned to complete a task.

**Task ID**: ${task.id}
**Task Title**: ${task.title}
**Owner**: ${task.owner}
**Working Directory**: ${task.workingDir || '/home/openclaw/.openclaw/workspace/'}

**Description**:
${task.description}

**Instructions**:
${task.instructions || 'Complete the task as described above.'}

**Deliverables**:
${task.deliverables || 'Provide a summary of what was accomplished.'}

**Steps**:
${formatSteps(task.steps)}

**Completion**:
When finished, update the task status to "review" or "done" by calling:
\`\`\`bash
curl -X PATCH http://localhost:8787/api/tasks/${task.id} \\
  -H "Content-Type: application/json" \\
  -d '{"status": "review"}'
\`\`\`

Then report your findings.
`;
}

function formatSteps(steps) {
  if (!steps || steps.length === 0) return '(No specific steps provided)';
  return steps.map((step, i) => `${i + 1}. ${step}`).join('\n');
}

async function getSessionStatus(sessionId) {
  // Query sessions API for status
  const response = await fetch('http://localhost:8787/api/sessions');
  if (!response.ok) return 'unknown';

  const sessions = await response.json();
  const session = sessions.find(s => s.id === sessionId);

  if (!session) return 'unknown';
  if (session.completed) return 'complete';
  if (session.error) return 'failed';

  return 'running';
}

async function killSession(sessionId) {
  await fetch(`http://localhost:8787/api/sessions/${encodeURIComponent(sessionId)}`, { method: 'DELETE' });
}

async function handleSessionFailure(slotId, sessionId, task, error) {
  console.error(`[${slotId}] Session ${sessionId} failed:`, error);

  // 1. Mark task as blocked
  await fetch(`http://localhost:8787/api/tasks/${task.id}`, {
    method: 'PATCH',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({
      status: 'blocked',
      metadata: {
        errorReason: error.message,
        failedAt: Date.now(),
        sessionId: sessionId
      }
    })
  });

  // 2. Clean up session resources
  await killSession(sessionId);

  // 3. Return to idle
  await updateHeartbeat({
    slot: slotId,
    status: 'idle',
    task: null,
    taskTitle: null,
    sessionId: null,
    lastUpdate: Date.now()
  });
}

// ---- 5 Error Handling Strategy

const DEFAULT_TIMEOUT = 30 * 60 * 1000; // 30 minutes

async function monitorWithTimeout(slotId, sessionId, task) {
  const timeout = task.timeoutMs || DEFAULT_TIMEOUT;

  const timeoutPromise = new Promise((resolve) => {
    setTimeout(() => resolve('timeout'), timeout);
  });

  const monitorPromise = monitorSession(slotId, sessionId, task);

  const result = await Promise.race([monitorPromise, timeoutPromise]);

  if (result === 'timeout') {
    console.error(`[${slotId}] Task ${task.id} timed out after ${timeout}ms`);
    await killSession(sessionId);
    await handleSessionFailure(slotId, sessionId, task,
      new Error('Session timeout exceeded'));
  }
}

async function recoverFromCrash(slotId) {
  // 1. Check for orphaned task
  const heartbeat = await readHeartbeat(slotId);

  if (heartbeat && heartbeat.status === 'working') {
    console.log(`[${slotId}] Found orphaned task: ${heartbeat.task}`);

    // 2. Kill orphaned session
    if (heartbeat.sessionId) {
      await killSession(heartbeat.sessionId);
    }

    // 3. Reset task to "todo" for retry
    await fetchWithRetry(`http://localhost:8787/api/tasks/${heartbeat.task}`, {
      method: 'PATCH',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({
        status: 'todo',
        metadata: {
          crashRecovery: true,
          previousSession: heartbeat.sessionId,
          recoveredAt: Date.now()
        }
      })
    });
  }

  // 4. Increment restart counter
  await incrementRestartCount(slotId);
}

// ---- 3 and 7: the loop

async function pollAndExecute(slotId) {
  await updateHeartbeat({
    slot: slotId,
    status: 'idle',
    task: null,
    taskTitle: null,
    sessionId: null,
    lastUpdate: Date.now()
  });

  currentTask = await pollForTask(slotId);
  if (currentTask && !shutdown) await pickupTask(slotId, currentTask);
  currentTask = null;
}

async function main() {
  console.log(`[${SLOT_ID}] Worker starting...`);
  await recoverFromCrash(SLOT_ID);
  await startup(SLOT_ID);

  while (!shutdown) {
    await pollAndExecute(SLOT_ID);
    await sleep(30000 + Math.random() * 5000); // 30 second poll interval, and jitter
  }
}

main().catch(err => {
  console.error(`[${SLOT_ID}] Fatal error:`, err);
  process.exit(1);
});
