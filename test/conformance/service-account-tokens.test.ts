import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, test } from 'node:test';
import type { Json, Reply } from './api.ts';
import { Api, assertRejected } from './api.ts';
import { pod, pods } from './objects.ts';

const AUTHENTICATION = '/apis/authentication.k8s.io/v1';
const AUDIENCE = 'https://kubernetes.default.svc';

let api: Api;
/** Namespace of one test, with the ServiceAccount `robot`. */
let home: string;
let robot: Json;

before(async () => {
  api = await Api.start({ serviceAccounts: true });
});

after(() => api.close());

const accounts = () => `/api/v1/namespaces/${home}/serviceaccounts`;
const request = (spec: Json, metadata?: Json): Promise<Reply> =>
  api.post(`${accounts()}/robot/token`, { ...(metadata && { metadata }), spec });

async function tokenOf(spec: Json = {}): Promise<string> {
  return (await api.made(request(spec))).status.token;
}

async function review(token: string, audiences?: readonly string[]): Promise<Json> {
  const spec = { token, ...(audiences && { audiences }) };
  return (await api.made(api.post(`${AUTHENTICATION}/tokenreviews`, { spec }))).status;
}

function whoami(token: string): Promise<Reply> {
  const headers = { authorization: `Bearer ${token}` };
  return api.send('POST', `${AUTHENTICATION}/selfsubjectreviews`, {}, headers);
}

function claimsOf(token: string): Json {
  return JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString());
}

describe('ServiceAccount tokens', () => {
  beforeEach(async () => {
    home = await api.namespace();
    robot = await api.made(
      api.post(accounts(), {
        apiVersion: 'v1',
        kind: 'ServiceAccount',
        metadata: { name: 'robot' },
      }),
    );
  });

  test('a token in another encoding does not authenticate', async () => {
    const token = await tokenOf();
    assert.equal((await whoami(token)).status, 201);
    for (const other of [`${token}=`, `${token}==`, `${token}.`, token.slice(0, -1)]) {
      assert.equal((await whoami(other)).status, 401, other.slice(-5));
    }
  });

  test('a token of a ServiceAccount authenticates it, with its groups, until it is deleted', async () => {
    const { body } = await request({ expirationSeconds: 1200 });
    assert.deepEqual([body.kind, body.apiVersion], ['TokenRequest', 'authentication.k8s.io/v1']);
    const { name, namespace, uid } = body.metadata;
    assert.deepEqual([name, namespace, uid], ['robot', home, robot.metadata.uid]);
    assert.deepEqual(body.spec, {
      audiences: [AUDIENCE],
      expirationSeconds: 1200,
      boundObjectRef: null,
    });
    const { token, expirationTimestamp } = body.status;
    const claims = claimsOf(token);
    assert.deepEqual(
      [claims.aud, claims.iss, claims.sub, claims.exp - claims.iat],
      [[AUDIENCE], AUDIENCE, `system:serviceaccount:${home}:robot`, 1200],
    );
    assert.ok(Math.abs(Date.parse(expirationTimestamp) / 1000 - claims.exp) <= 1);
    const expected = {
      username: `system:serviceaccount:${home}:robot`,
      uid: robot.metadata.uid,
      groups: ['system:serviceaccounts', `system:serviceaccounts:${home}`, 'system:authenticated'],
      extra: { 'authentication.kubernetes.io/credential-id': [`JTI=${claims.jti}`] },
    };
    assert.deepEqual((await whoami(token)).body.status.userInfo, expected);
    assert.deepEqual(await review(token), {
      authenticated: true,
      user: expected,
      audiences: [AUDIENCE],
    });
    const pods = await api.send('GET', `/api/v1/namespaces/${home}/pods`, undefined, {
      authorization: `Bearer ${token}`,
    });
    assert.equal(pods.status, 403);

    await api.made(api.delete(`${accounts()}/robot`));
    await api.until('the token is rejected', async () => (await whoami(token)).status === 401);
    const { error, authenticated } = await review(token);
    assert.equal(authenticated, undefined);
    assert.match(error, /^\[invalid bearer token, /);
  });

  test('a token is valid for its audiences only', async () => {
    const token = await tokenOf({ audiences: ['vault', 'other'] });
    assert.equal((await whoami(token)).status, 401);
    const error =
      '[invalid bearer token, token audiences ["vault" "other"] is invalid for the target audiences ["https://kubernetes.default.svc"]]';
    assert.deepEqual(await review(token), { user: {}, error });
    const { authenticated, audiences } = await review(token, ['x', 'vault']);
    assert.deepEqual([authenticated, audiences], [true, ['vault']]);
  });

  test('a token that is bound to a Pod is valid until the Pod is deleted', async () => {
    const spec = { ...pod('web').spec, serviceAccountName: 'robot' };
    const web = await api.made(api.post(pods(home), { ...pod('web'), spec }));
    const boundObjectRef = { kind: 'Pod', apiVersion: 'v1', name: 'web', uid: web.metadata.uid };
    const token = await tokenOf({ boundObjectRef });
    assert.deepEqual(claimsOf(token)['kubernetes.io'].pod, { name: 'web', uid: web.metadata.uid });
    const { extra } = (await whoami(token)).body.status.userInfo;
    assert.deepEqual(extra['authentication.kubernetes.io/pod-name'], ['web']);
    assertRejected(await request({ boundObjectRef: { ...boundObjectRef, name: 'none' } }), {
      code: 404,
      reason: 'NotFound',
      message: 'pods "none" not found',
    });
    assertRejected(await request({ boundObjectRef: { ...boundObjectRef, uid: 'x' } }), {
      code: 409,
      reason: 'Conflict',
      message: `Operation cannot be fulfilled on Pod "web": the UID in the bound object reference (x) does not match the UID in record. The object might have been deleted and then recreated`,
    });
    await api.made(api.delete(`${pods(home)}/web`, { gracePeriodSeconds: 0 }));
    await api.until('the token is rejected', async () => (await whoami(token)).status === 401);
  });

  test('a malformed token or request is rejected', async () => {
    const token = await tokenOf();
    const [header, , signature] = token.split('.');
    const claims = { ...claimsOf(token), sub: 'system:admin' };
    const forged = Buffer.from(JSON.stringify(claims)).toString('base64url');
    for (const wrong of [`${header}.${forged}.${signature}`, `${token}x`, `${token}.x`, 'a.b.c']) {
      assert.equal((await whoami(wrong)).status, 401, wrong);
    }
    assertRejected(await request({ expirationSeconds: 599 }), {
      code: 422,
      reason: 'Invalid',
      message:
        'TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid value: 599: may not specify a duration less than 10 minutes',
    });
    assertRejected(await request({}, { name: 'other' }), {
      code: 422,
      reason: 'Invalid',
      message:
        'TokenRequest.authentication.k8s.io "robot" is invalid: metadata.name: Invalid value: "other": must match the service account name if specified',
    });
    assertRejected(
      await request({ boundObjectRef: { kind: 'ConfigMap', apiVersion: 'v1', name: 'a' } }),
      {
        code: 400,
        reason: 'BadRequest',
        message: 'cannot bind token to object of type /v1, Kind=ConfigMap',
      },
    );
    assertRejected(await api.post(`${accounts()}/none/token`, { spec: {} }), {
      code: 404,
      reason: 'NotFound',
      message: 'serviceaccounts "none" not found',
    });
  });

  const WEBHOOK = {
    kind: 'ValidatingWebhookConfiguration',
    apiVersion: 'admissionregistration.k8s.io/v1',
    name: 'w',
  };
  const groups = { admissionReviewAPIGroups: ['apps'] };
  const DECODED =
    'TokenRequest in version "v1" cannot be handled as a TokenRequest: json: cannot unmarshal ';
  for (const [what, sent, code, message] of [
    [
      'a text as seconds',
      { spec: { expirationSeconds: '600' } },
      400,
      `${DECODED}string into Go struct field TokenRequestSpec.spec.expirationSeconds of type int64`,
    ],
    [
      'a fraction as seconds',
      { spec: { expirationSeconds: 600.5 } },
      400,
      `${DECODED}number 600.5 into Go struct field TokenRequestSpec.spec.expirationSeconds of type int64`,
    ],
    [
      'a number as audience',
      { spec: { audiences: [1] } },
      400,
      `${DECODED}number into Go struct field TokenRequestSpec.spec.audiences of type string`,
    ],
    [
      'no seconds',
      { spec: { expirationSeconds: 0 } },
      422,
      'spec.expirationSeconds: Invalid value: 0: may not specify a duration less than 10 minutes',
    ],
    [
      'too many seconds',
      { spec: { expirationSeconds: 2 ** 32 + 1 } },
      422,
      'spec.expirationSeconds: Invalid value: 4294967297: may not specify a duration larger than 2^32 seconds',
    ],
    [
      'another namespace',
      { metadata: { namespace: 'other' } },
      400,
      'the namespace of the provided object does not match the namespace sent on the request',
    ],
    [
      'an object without a name',
      { spec: { boundObjectRef: { kind: 'Secret', apiVersion: 'v1' } } },
      400,
      'Name parameter required.',
    ],
    [
      'an apiVersion that cannot be parsed',
      { spec: { boundObjectRef: { kind: 'Secret', apiVersion: 'a/b/c', name: 'x' } } },
      404,
      'secrets "x" not found',
    ],
    [
      'attestations',
      { spec: { expirationSeconds: 1, attestations: groups } },
      422,
      'spec.attestations: Invalid value: {"admissionReviewAPIGroups":["apps"]}: attestations may only be specified with a webhook bound object reference',
    ],
    [
      'a webhook',
      { spec: { boundObjectRef: WEBHOOK, attestations: groups } },
      400,
      'cannot bind token to object of type admissionregistration.k8s.io/v1, Kind=ValidatingWebhookConfiguration (feature gate APIServerWebhookAuthenticationToken is disabled)',
    ],
    [
      'a webhook without attestations',
      { spec: { boundObjectRef: WEBHOOK } },
      422,
      'spec.attestations: Invalid value: null: webhook bound requests require exactly one admissionReviewAPIGroups attestation',
    ],
    [
      'a webhook with another attestation',
      { spec: { boundObjectRef: WEBHOOK, attestations: { other: ['a'] } } },
      422,
      'spec.attestations[other]: Unsupported value: "other": supported values: "admissionReviewAPIGroups"',
    ],
  ] as const) {
    test(`a request with ${what} is rejected`, async () => {
      const { status, body } = await api.post(`${accounts()}/robot/token`, sent);
      const prefix = code === 422 ? 'TokenRequest.authentication.k8s.io "" is invalid: ' : '';
      assert.deepEqual([status, body.message], [code, prefix + message]);
    });
  }

  test('an unknown field of a request is a warning, or an error under strict validation', async () => {
    const sent = { metadata: { labels: { a: 'b' } }, spec: { x: 1 } };
    const { status, body, headers } = await api.post(`${accounts()}/robot/token`, sent);
    assert.deepEqual([status, body.metadata.labels], [201, { a: 'b' }]);
    assert.equal(headers['warning'], String.raw`299 - "unknown field \"spec.x\""`);
    const strict = await api.post(`${accounts()}/robot/token?fieldValidation=Strict`, sent);
    assert.match(strict.body.message, /strict decoding error: unknown field "spec\.x"$/);
  });
});

describe('a new Pod', () => {
  const MOUNT_PATH = '/var/run/secrets/kubernetes.io/serviceaccount';
  const create = (name: string, spec: Json = {}) =>
    api.post(pods(home), { ...pod(name), spec: { ...pod(name).spec, ...spec } });

  before(async () => {
    home = await api.namespace();
    await api.made(api.post(accounts(), { metadata: { name: 'default' } }));
    const imagePullSecrets = [{ name: 'registry' }];
    const metadata = { name: 'puller' };
    const puller = { metadata, imagePullSecrets, automountServiceAccountToken: false };
    await api.made(api.post(accounts(), puller));
  });

  test('gets the default ServiceAccount and its token volume', async () => {
    const { spec } = await api.made(create('plain'));
    assert.equal(spec.serviceAccountName, 'default');
    assert.equal(spec.serviceAccount, 'default');
    const [{ name, projected }] = spec.volumes;
    assert.match(name, /^kube-api-access-[a-z0-9]{5}$/);
    assert.deepEqual(projected, {
      defaultMode: 420,
      sources: [
        { serviceAccountToken: { expirationSeconds: 3607, path: 'token' } },
        { configMap: { name: 'kube-root-ca.crt', items: [{ key: 'ca.crt', path: 'ca.crt' }] } },
        {
          downwardAPI: {
            items: [
              {
                path: 'namespace',
                fieldRef: { apiVersion: 'v1', fieldPath: 'metadata.namespace' },
              },
            ],
          },
        },
      ],
    });
    assert.deepEqual(spec.containers[0].volumeMounts, [
      { name, readOnly: true, mountPath: MOUNT_PATH },
    ]);
  });

  test('gets no token volume if it mounts something else there, or does not want it', async () => {
    const volumes = [{ name: 'own', emptyDir: {} }];
    const volumeMounts = [{ name: 'own', mountPath: MOUNT_PATH }];
    const containers = [{ name: 'web', image: 'nginx', volumeMounts }];
    const own = await api.made(create('own', { volumes, containers }));
    assert.deepEqual(own.spec.volumes, volumes);
    const without = await api.made(create('without', { automountServiceAccountToken: false }));
    assert.equal(without.spec.volumes, undefined);
  });

  test('gets the image pull secrets of its ServiceAccount', async () => {
    const { spec } = await api.made(create('puller', { serviceAccountName: 'puller' }));
    assert.deepEqual(spec.imagePullSecrets, [{ name: 'registry' }]);
    assert.equal(spec.volumes, undefined);
    const imagePullSecrets = [{ name: 'other' }];
    const other = await api.made(
      create('other', { serviceAccountName: 'puller', imagePullSecrets }),
    );
    assert.deepEqual(other.spec.imagePullSecrets, imagePullSecrets);
  });

  test('is rejected if its ServiceAccount does not exist', async () => {
    assertRejected(await create('lost', { serviceAccountName: 'missing' }), {
      code: 403,
      reason: 'Forbidden',
      message: `pods "lost" is forbidden: error looking up service account ${home}/missing: serviceaccount "missing" not found`,
    });
  });
});
