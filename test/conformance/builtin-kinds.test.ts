import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import type { Json, Reply } from './api.ts';
import { Api } from './api.ts';
import type { Sample } from './builtin-objects.ts';
import { SAMPLES } from './builtin-objects.ts';
import { skipBefore } from '../support/skip.ts';

/**
 * The answers of kube-apiserver to the same requests. `RECORD=1 npm run test:real -- FILE` writes them again;
 * otherwise they are compared, on both servers.
 */
const RECORDED = join(import.meta.dirname, 'builtin-kinds.json');
const TABLE = 'application/json;as=Table;v=v1;g=meta.k8s.io';
const isRecording = process.env['RECORD'] === '1';

let api: Api;
let namespace: string;
let recorded: Record<string, Json>;
const answers: Record<string, Json> = {};

before(async () => {
  recorded = JSON.parse(await readFile(RECORDED, 'utf8').catch(() => '{}'));
  api = await Api.start();
  namespace = await api.namespace();
});

after(async () => {
  await api.close();
  if (isRecording) await writeFile(RECORDED, `${JSON.stringify(answers, undefined, 1)}\n`);
});

for (const sample of SAMPLES) {
  test(`${sample.resource}: answers as kube-apiserver`, skipBefore(37), async () => {
    // As JSON, which has no undefined.
    const answer = JSON.parse(JSON.stringify(await answersOf(sample)));
    answers[sample.resource] = answer;
    if (!isRecording) assert.deepEqual(answer, recorded[sample.resource]);
  });
}

async function answersOf({ resource, kind, cluster, name = 'sample', ...bodies }: Sample) {
  const cut = resource.lastIndexOf('/');
  const apiVersion = resource.slice(0, cut);
  const root = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
  const place = cluster ? root : `${root}/namespaces/${namespace}`;
  const collection = `${place}/${resource.slice(cut + 1)}`;
  const path = `${collection}/${name}`;
  const object = (fields: Json, metadata: Json = { name }): Json => ({
    apiVersion,
    kind,
    metadata,
    ...JSON.parse(JSON.stringify(fields).replaceAll('NAMESPACE', namespace)),
  });
  const put = async (query: string) =>
    (await api.send('PUT', `${path}${query}`, object(bodies.valid))).status;
  const missing = await put('?dryRun=All');
  const created = await api.post(collection, object(bodies.valid));
  const table = await api.get(path, TABLE);
  const patched = await api.patch(path, { metadata: { labels: { patched: 'yes' } } });
  const applied = await api.apply(path, 'applier', {
    apiVersion,
    kind,
    metadata: { annotations: { applied: 'yes' } },
  });
  const unconditional = await put('');
  const invalid =
    bodies.invalid && (await api.post(collection, object(bodies.invalid, { name: 'invalid' })));
  const unknown = await api.send('POST', `${collection}?fieldValidation=Strict&dryRun=All`, {
    ...object(bodies.valid, { name: 'other' }),
    unknown: 1,
  });
  // A valid beginning of a path segment, and of no other name.
  const prefixed = [path, `${path}/status`].map((target) =>
    api.patch(`${target}?dryRun=All`, { metadata: { generateName: 'A', selfLink: 'x' } }),
  );
  const prefixes = await Promise.all(prefixed);
  const removed = await api.delete(path);
  return plain({
    missing,
    created: content(created),
    table: {
      columns: table.body?.columnDefinitions?.map(({ name, type, format, priority }: Json) =>
        [name, type, format, priority].join('|'),
      ),
      cells: table.body?.rows?.[0].cells.map((cell: Json) =>
        /^\d+[sd]$/.test(String(cell)) ? 'AGE' : cell,
      ),
    },
    patched: [patched.status, patched.body?.metadata?.generation],
    applied: [
      applied.status,
      applied.body?.metadata?.managedFields?.map(({ manager }: Json) => manager),
    ],
    unconditional,
    ...(invalid && { invalid: content(invalid) }),
    unknown: content(unknown),
    prefixes: prefixes.map(({ status, body }) =>
      status === 200 ? [body.metadata.generateName, body.metadata.selfLink] : status,
    ),
    removed: [removed.status, removed.body?.kind],
  });
}

function content({ status, body, text }: Reply): Json {
  if (body?.kind !== 'Status') return { status, body };
  return { status, message: body.message ?? text };
}

/** Finalizers for a controller of kube-controller-manager, which the embedded server does not add. */
function isProtection(finalizers: Json): boolean {
  return finalizers.every((name: string) => name.endsWith('-protection'));
}

/** The answer without what differs from run to run, in a stable order. */
function plain(value: Json, key = ''): Json {
  if (Array.isArray(value)) return value.map((item) => plain(item));
  if (typeof value === 'object' && value !== null) {
    const entries = Object.entries(value)
      .filter(([name]) => !['resourceVersion', 'time'].includes(name))
      .filter(([name, member]) => name !== 'finalizers' || !isProtection(member))
      .sort(([a], [b]) => (a < b ? -1 : 1));
    return Object.fromEntries(entries.map(([name, member]) => [name, plain(member, name)]));
  }
  if (key === 'uid') return 'UID';
  if (typeof value !== 'string') return value;
  return value
    .replaceAll(namespace, 'NAMESPACE')
    .replaceAll(/[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}/g, 'UID')
    .replaceAll(/20(?!26-01-02)\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ/g, 'TIME');
}
