import assert from 'node:assert/strict';
import type { Api, Json } from './api.ts';

/** Reasons of causes by their last words, so that a table stays narrow. */
type Causes =
  readonly `${string} ${'Duplicate' | 'Forbidden' | 'Invalid' | 'NotFound' | 'NotSupported' | 'Required' | 'TooLong' | 'TooMany'}`[];
export type Case = readonly [change: Json, ...causes: Causes];

/** Sends each object as a dry run, and compares the causes of the refusal without their messages. */
export async function refusals(
  api: Api,
  path: string,
  cases: readonly Case[],
  merge: (change: Json) => Json,
): Promise<void> {
  for (const [change, ...expected] of cases) {
    const { status, body } = await api.post(`${path}?dryRun=All`, merge(change));
    const causes: Json[] = body.details?.causes ?? [];
    const found = causes.map(
      ({ field, reason }) => `${field} ${reason.slice('FieldValue'.length)}`,
    );
    const shown = JSON.stringify(change);
    assert.deepEqual(found.sort(), expected.toSorted(), shown);
    assert.equal(status, expected.length > 0 ? 422 : 201, shown);
  }
}

/** Writes an object, and compares the causes for which updates of it, as dry runs, are refused. */
export async function refusedUpdates(
  api: Api,
  path: string,
  object: Json,
  cases: readonly Case[],
  subresource: string = '',
): Promise<void> {
  const place = `${path}/${object.metadata.name}`;
  const made = await api.made(api.post(path, object));
  const { resourceVersion } = made.metadata;
  const metadata = { ...object.metadata, resourceVersion };
  for (const [change, ...expected] of cases) {
    const sent = Object.assign(
      {},
      object,
      { metadata },
      ...Object.entries(change).map(([field, value]: Json) => ({
        [field]: field === 'metadata' ? { ...metadata, ...value } : value,
      })),
    );
    const { status, body } = await api.put(`${place}${subresource}?dryRun=All`, sent);
    const found = (body.details?.causes ?? []).map(
      ({ field, reason }: Json) => `${field} ${reason.slice('FieldValue'.length)}`,
    );
    assert.deepEqual(found.sort(), expected.toSorted(), JSON.stringify(change));
    assert.equal(status, expected.length > 0 ? 422 : 200, JSON.stringify(change));
  }
  await api.send('DELETE', `${place}?gracePeriodSeconds=0`);
}
