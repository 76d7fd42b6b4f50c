import { writeFileSync } from 'node:fs';

/** Number of entries of each sync: a change, a sync, two requests, an event and a timer. */
const PER_SYNC = 6;

/** Writes a recording with about `entries` entries of 500 keys in two hours. */
export function writeLargeRecording(file: string, entries: number): void {
  const lines: object[] = [
    {
      kind: 'header',
      format: 'crd-controller-recording',
      version: 1,
      program: { name: 'large', version: 'v1' },
      controllers: ['count'],
      namespaces: [],
      startMs: Date.UTC(2026, 0, 1),
      ms: 0,
      salt: '',
      redacted: [],
    },
    { kind: 'cache', id: 1, name: 'pods', group: '', version: 'v1', plural: 'pods', ms: 0 },
    { kind: 'term', state: 'started', lease: true, ms: 0 },
  ];
  const syncs = Math.floor(entries / PER_SYNC);
  const stepMs = 7_200_000 / syncs;
  for (let sync = 1; sync <= syncs; sync++) {
    const ms = sync * stepMs;
    const key = `default/web-${sync % 500}`;
    const name = `web-${sync % 500}`;
    const causes = [{ text: `Pod ${key} updated`, times: 1 }];
    const path = `/api/v1/namespaces/default/pods/${name}`;
    const object = { kind: 'Pod', metadata: { namespace: 'default', name } };
    const ending =
      sync % 97 === 0
        ? { error: 'Error: refused' }
        : { outcome: { kind: 'requeueAfter', ms: 60_000 } };
    const request = (id: number, method: string, status: number) => [
      { kind: 'request', request: id, sync, method, path, ms: ms + 1 },
      { kind: 'response', request: id, status, headers: {}, body: object, ms: ms + 3 },
    ];
    lines.push(
      { kind: 'set', ms, cache: 1, object },
      {
        kind: 'sync',
        sync,
        controller: 'count',
        key,
        atMs: 0,
        reconcileID: '1',
        attempt: 1,
        causes,
        ms,
      },
      ...request(2 * sync, 'GET', 200),
      ...request(2 * sync + 1, 'PATCH', sync % 97 === 0 ? 409 : 200),
      {
        kind: 'event',
        sync,
        event: { type: 'Normal', reason: 'Seen', message: 'Seen', object: `Pod ${key}` },
        ms: ms + 4,
      },
      { kind: 'end', sync, ending, now: [], random: [], ms: ms + 5 },
    );
  }
  writeFileSync(file, lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
}
