/** What the control route takes, for the help. */
export const controlHelp = [
  ['GET  /control', 'where the clock stands, who has synced, which faults are on'],
  ['POST /control/clock', '{"speed": 60} or {"advance": 3600} seconds'],
  ['POST /control/sync', '{"person": "ada"}: the ring syncs now'],
  ['POST /control/nap', '{"person": "ada", "minutes": 30}: a nap that ends now, and a sync'],
  ['POST /control/edit', '{"person": "ada", "kind": "delete-sleep", "day": …, "id": …}; retype-sleep, edit-bedtime, reanalyse-day'],
  [
    'POST /control/token',
    '{"person": "ada", "state": "expired"}; active, lapsed, revoked; those of a sign-in too; tells what it was before',
  ],
  ['POST /control/faults', '{"status": "503/0.5", "slow": null}: on, and off'],
]
  .map(([route = '', body]) => `  ${route.padEnd(22)}${body}`)
  .join('\n');
