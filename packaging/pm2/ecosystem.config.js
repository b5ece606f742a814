// Workers of two slots under PM2: pm2 start ecosystem.config.js
//
// stint-worker restarts nothing of itself and ends what it started, also when it is killed; PM2 brings it back. A slot
// that crashes three times in a minute is quarantined by the server, whatever PM2 does: see stint slot ls.
const slots = ['slot-1', 'slot-2'];

module.exports = {
  apps: slots.map((slot) => ({
    name: `worker-${slot}`,
    script: 'stint-worker',
    interpreter: 'none',
    args: `--slot ${slot}`,
    autorestart: true,
    max_restarts: 10,
    min_uptime: '10s',
    // Ten of these are longer than the 90 s for which the slot of a worker is taken that vanished with its machine.
    restart_delay: 10000,
    // Running work is let finish for up to five minutes after the first signal.
    kill_timeout: 330000,
    env: {
      SLOT_ID: slot,
      STINT_URL: 'http://127.0.0.1:8787',
      // STINT_TOKEN_FILE: a file with a worker token, from: stint token create --kind worker
    },
  })),
};
