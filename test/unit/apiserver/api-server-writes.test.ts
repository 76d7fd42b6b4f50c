import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Api, CONFIG_MAPS, PODS, configMap, pod } from './api-client.ts';

describe('create', () => {
  test('a status that the server sets has no owner', async () => {
    const api = new Api();
    const { status, metadata } = (await api.post(PODS, pod('web'))).body;
    assert.equal(status.phase, 'Pending');
    assert.equal(metadata.managedFields.length, 1);
    assert.deepEqual(Object.keys(metadata.managedFields[0].fieldsV1), ['f:spec']);
  });

  test('a generated name is the base and five characters, and is generated again if it exists', async () => {
    const randoms = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0.99, 0.99, 0.99, 0.99, 0.99];
    const api = new Api({ random: () => randoms.shift() ?? 0 });
    const draft = { ...configMap(''), metadata: { generateName: 'job-' } };
    assert.equal((await api.post(CONFIG_MAPS, draft)).body.metadata.name, 'job-bbbbb');
    assert.equal((await api.post(CONFIG_MAPS, draft)).body.metadata.name, 'job-99999');
  });

  test('a field with the name __proto__ is ordinary data', async () => {
    const api = new Api();
    const body = `{"metadata":{"name":"a"},"data":{"__proto__":"x"}}`;
    const { status, text } = await api.post(CONFIG_MAPS, body);
    assert.equal(status, 201);
    assert.match(text, /"__proto__":"x"/);
    assert.equal(Object.hasOwn(Object.prototype, 'x'), false);
  });
});
