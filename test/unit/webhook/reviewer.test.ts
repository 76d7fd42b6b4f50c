import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ApiError } from '../../../src/api/api-error.ts';
import type { Status } from '../../../src/api/status.ts';
import { jsonPatch } from '../../../src/apiserver/patch/json-patch.ts';
import { metricsOf } from '../../../src/metrics/metrics.ts';
import { createRegistry, expose } from '../../../src/metrics/registry.ts';
import { FakeClock, settle } from '../../../src/util/fake-clock.ts';
import type { OpenTelemetryApi } from '../../../src/util/open-telemetry.ts';
import {
  AdmissionDenied,
  duplicate,
  invalid,
  required,
} from '../../../src/webhook/field-errors.ts';
import type { AdmissionRequest } from '../../../src/webhook/declaration.ts';
import { Reviewer } from '../../../src/webhook/reviewer.ts';
import { Webhooks } from '../../../src/webhook/webhooks.ts';
import { recordingLogger } from '../../support/recording-logger.ts';
import { BOXES_V1, BOXES_V2, BOXES_V3 } from './kinds.ts';
import type { BoxV1 } from './kinds.ts';

const GROUP = 'test.example.com';
const VALIDATE = '/validate-test-example-com-v1-box';
const MUTATE = '/mutate-test-example-com-v1-box';

interface Answer {
  readonly status: number;
  readonly text: string;
  readonly headers: Readonly<Record<string, string>> | undefined;
  readonly response: {
    readonly allowed?: boolean;
    readonly status?: Status;
    readonly warnings?: readonly string[];
    readonly patch?: string;
    readonly result?: { readonly status: string; readonly message?: string };
    readonly convertedObjects?: readonly object[];
  };
}

/** A reviewer on virtual time, with its log and metrics. */
function reviewerOf(webhooks: Webhooks, memory: { bytes?: number; waitMs?: number } = {}) {
  const clock = new FakeClock();
  const { log, lines } = recordingLogger([], 4);
  const registry = createRegistry();
  const deps = { clock, log, metrics: metricsOf(registry).webhook };
  const reviewer = new Reviewer(webhooks.entries(), deps, memory);
  const send = async (
    path: string,
    body: string | object,
    {
      timeout,
      signal = new AbortController().signal,
    }: { timeout?: string; signal?: AbortSignal } = {},
  ): Promise<Answer> => {
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    const request = { path, body: Buffer.from(text), timeout, headers: {}, signal };
    const reply = await reviewer.review(request);
    const response = reply.status === 200 ? JSON.parse(reply.body).response : {};
    return { status: reply.status, text: reply.body, headers: reply.headers, response };
  };
  const metrics = async () => (await expose(registry)).text;
  return { clock, lines, send, metrics };
}

function box(size: string | undefined, metadata: object = {}): object {
  return {
    apiVersion: `${GROUP}/v1`,
    kind: 'Box',
    metadata: { name: 'x', namespace: 'default', ...metadata },
    ...(size !== undefined && { spec: { size } }),
  };
}

function review(request: object = {}): object {
  return {
    apiVersion: 'admission.k8s.io/v1',
    kind: 'AdmissionReview',
    request: {
      uid: 'u1',
      kind: { group: GROUP, version: 'v1', kind: 'Box' },
      resource: { group: GROUP, version: 'v1', resource: 'boxes' },
      operation: 'CREATE',
      name: 'x',
      namespace: 'default',
      userInfo: { username: 'alice', groups: ['team'], extra: { scope: ['a'] } },
      object: box('2x3'),
      oldObject: null,
      dryRun: false,
      options: { kind: 'CreateOptions' },
      ...request,
    },
  };
}

describe('validators', () => {
  test('errors in fields are answered as kube-apiserver answers its own, with the values', async () => {
    const { send, lines } = reviewerOf(
      new Webhooks().validates(BOXES_V1, (_, { warn }) => {
        warn('size is deprecated');
        return [
          invalid('spec.size', 'must be a square'),
          invalid('metadata.labels[example.com/a.b]', 'must be short'),
          required('spec.tags', 'name at least one'),
          duplicate('spec.tags[1]', 'a'),
        ];
      }),
    );
    const object = box('2x3', { labels: { 'example.com/a.b': 'long' } });
    const { status, response } = await send(VALIDATE, review({ object }));
    assert.equal(status, 200);
    assert.equal(response.allowed, false);
    assert.deepEqual(response.warnings, ['size is deprecated']);
    assert.equal(response.status?.code, 422);
    assert.equal(response.status.reason, 'Invalid');
    assert.equal(
      response.status.message,
      'Box.test.example.com "x" is invalid: [spec.size: Invalid value: "2x3": must be a square, ' +
        'metadata.labels[example.com/a.b]: Invalid value: "long": must be short, ' +
        'spec.tags: Required value: name at least one, spec.tags[1]: Duplicate value: "a"]',
    );
    assert.deepEqual(response.status.details?.causes?.[0], {
      reason: 'FieldValueInvalid',
      field: 'spec.size',
      message: 'Invalid value: "2x3": must be a square',
    });
    assert.deepEqual(
      lines.map(({ level, fields }) => [level, fields]),
      [
        [
          4,
          {
            webhook: VALIDATE,
            uid: 'u1',
            operation: 'CREATE',
            namespace: 'default',
            name: 'x',
            user: 'alice',
            allowed: false,
            status: 200,
            durationMs: 0,
          },
        ],
      ],
    );
  });

  test('the function gets the object, the old object, the user and the request', async () => {
    const seen: AdmissionRequest<BoxV1>[] = [];
    const see = (_: unknown, request: AdmissionRequest<BoxV1>) => void seen.push(request);
    const { send } = reviewerOf(
      new Webhooks().validates(BOXES_V1, see, { operations: ['CREATE', 'UPDATE', 'DELETE'] }),
    );
    const [old, dryRun] = [box('1x1'), true];
    for (const request of [
      {},
      { operation: 'UPDATE', oldObject: old, dryRun },
      { operation: 'DELETE', object: null, oldObject: old },
      { operation: 'CONNECT', object: null },
    ]) {
      const { response } = await send(VALIDATE, review(request));
      assert.deepEqual(response, { uid: 'u1', allowed: true });
    }
    assert.deepEqual(
      seen.map((one) => [one.operation, one.object.spec.size, one.old?.spec.size, one.isDryRun]),
      [
        ['CREATE', '2x3', undefined, false],
        ['UPDATE', '2x3', '1x1', true],
        ['DELETE', '1x1', undefined, false],
      ],
    );
    const { user, namespace, name, subresource, options } = seen[0]!;
    assert.deepEqual(user, {
      username: 'alice',
      uid: undefined,
      groups: ['team'],
      extra: { scope: ['a'] },
    });
    assert.deepEqual([namespace, name, subresource], ['default', 'x', undefined]);
    assert.deepEqual(options, { kind: 'CreateOptions' });
  });

  test('an object that is being deleted is only validated on request', async () => {
    const reject = () => [required('spec.size')];
    const { send } = reviewerOf(
      new Webhooks()
        .validates(BOXES_V1, reject)
        .validates(BOXES_V1, reject, { name: 'always', whileDeleting: true }),
    );
    const oldObject = box('1x1', { deletionTimestamp: '2026-01-01T00:00:00Z' });
    const update = review({ operation: 'UPDATE', oldObject });
    assert.equal((await send(VALIDATE, update)).response.allowed, true);
    assert.equal((await send(`${VALIDATE}-always`, update)).response.allowed, false);
    // A client cannot evade the validation with a timestamp in the new object.
    const object = oldObject;
    const forged = review({ operation: 'UPDATE', object, oldObject: box('1x1') });
    assert.equal((await send(VALIDATE, forged)).response.allowed, false);
  });

  test('a rejection has the code, the reason, the message and the details of the error', async () => {
    const errors = [
      new AdmissionDenied('not today'),
      new AdmissionDenied('later', { code: 409, reason: 'Conflict', details: { name: 'x' } }),
      new ApiError({ kind: 'notFound', code: 404, reason: 'NotFound', message: 'no class' }),
      new ApiError({ kind: 'badRequest', code: 400, message: 'no name' }),
    ];
    const { send, lines } = reviewerOf(
      new Webhooks().validates(BOXES_V1, () => {
        throw errors.shift()!;
      }),
    );
    const statuses = [];
    while (errors.length > 0) statuses.push((await send(VALIDATE, review())).response.status);
    assert.deepEqual(
      statuses.map((status) => [status?.code, status?.reason, status?.message, status?.details]),
      [
        [403, 'Forbidden', 'not today', undefined],
        [409, 'Conflict', 'later', { name: 'x' }],
        [404, 'NotFound', 'no class', undefined],
        [400, undefined, 'no name', undefined],
      ],
    );
    assert.ok(lines.every(({ level }) => level === 4));
  });
});

describe('defaulters', () => {
  test('the patch is what the function changed', async () => {
    const { send } = reviewerOf(
      new Webhooks().defaults(BOXES_V1, (draft) => {
        draft.spec.tags ??= ['new'];
        draft.metadata.labels = { ...draft.metadata.labels, 'a/b': 'c' };
      }),
    );
    const { response } = await send(MUTATE, review());
    assert.equal(response.allowed, true);
    const patch = JSON.parse(Buffer.from(response.patch!, 'base64').toString());
    assert.deepEqual(jsonPatch(box('2x3'), patch), {
      ...box('2x3', { labels: { 'a/b': 'c' } }),
      spec: { size: '2x3', tags: ['new'] },
    });
    const { response: unchanged } = await send(
      MUTATE,
      review({
        object: { ...box('2x3', { labels: { 'a/b': 'c' } }), spec: { size: '1x1', tags: [] } },
      }),
    );
    assert.deepEqual(unchanged, { uid: 'u1', allowed: true });
  });
});

describe('failures', () => {
  const failing: Record<string, () => unknown> = {
    'an error': () => {
      throw new TypeError('no such property');
    },
    'a rejected promise': () => Promise.reject(new Error('lost')),
    'an internal error of the API server': () => {
      throw new ApiError({ kind: 'internal', code: 500, message: 'broken' });
    },
    'an error of the API server that is not about the request': () => {
      throw new ApiError({ kind: 'unavailable', code: 503, message: 'try later' });
    },
    'a text instead of errors': () => 'wrong',
    'a list of texts': () => ['wrong'],
    'a boolean': () => false,
  };
  for (const [what, run] of Object.entries(failing)) {
    test(`${what} is a failure, which the failure policy decides about`, async () => {
      const { send, lines, metrics } = reviewerOf(
        new Webhooks().validates(BOXES_V1, run as () => undefined),
      );
      const { status, text } = await send(VALIDATE, review({ object: box('secret') }));
      assert.equal(status, 500);
      assert.match(text, /u1/);
      assert.equal(lines[0]?.level, 'error');
      assert.doesNotMatch(JSON.stringify(lines) + text, /secret/);
      const exposed = await metrics();
      assert.match(exposed, /^controller_runtime_webhook_panics_total 1$/m);
      assert.match(
        exposed,
        /^controller_runtime_webhook_requests_total\{webhook="\/validate-test-example-com-v1-box",code="500"\} 1$/m,
      );
    });
  }

  test('a draft that is not JSON is a failure', async () => {
    const { send } = reviewerOf(
      new Webhooks().defaults(BOXES_V1, (draft) => {
        Object.assign(draft, { self: draft });
      }),
    );
    assert.equal((await send(MUTATE, review())).status, 500);
  });

  test('a function has less time than the API server waits', async () => {
    const signals: AbortSignal[] = [];
    const { send, clock, lines, metrics } = reviewerOf(
      new Webhooks().validates(BOXES_V1, (_, { signal }) => {
        signals.push(signal);
        return new Promise(() => undefined);
      }),
    );
    for (const [timeout, ms] of [
      ['10s', 9000],
      ['1s', 750],
      ['30s', 29_000],
      ['9999s', 29_000],
      ['soon', 9000],
      [undefined, 9000],
    ] as const) {
      const answers: Answer[] = [];
      void send(VALIDATE, review(), timeout === undefined ? {} : { timeout }).then((one) =>
        answers.push(one),
      );
      await clock.advance(ms - 1);
      assert.equal(answers.length, 0);
      await clock.advance(1);
      assert.equal(answers.at(0)?.status, 504);
      assert.ok(signals.at(-1)?.aborted);
    }
    assert.deepEqual(
      lines.map(({ fields }) => fields['durationMs']),
      [9000, 750, 29_000, 29_000, 9000, 9000],
    );
    assert.match(await metrics(), /^controller_runtime_webhook_latency_seconds_sum\{.*\} 85\.75$/m);
    assert.equal(clock.pending, 0);
  });

  test('the signal of a function aborts when the API server closes the connection', async () => {
    const client = new AbortController();
    const { send, metrics } = reviewerOf(
      new Webhooks().validates(BOXES_V1, () => new Promise(() => undefined)),
    );
    const answer = send(VALIDATE, review(), { signal: client.signal });
    await settle();
    client.abort();
    assert.equal((await answer).status, 499);
    assert.match(await metrics(), /^controller_runtime_webhook_panics_total 0$/m);
  });
});

describe('hostile requests', () => {
  const object = box('2x3');
  const bad: Record<string, string | object> = {
    'an empty body': '',
    'no JSON': '{"request":',
    'a list': '[]',
    'another kind': { ...review(), kind: 'ConversionReview' },
    'another version': { ...review(), apiVersion: 'admission.k8s.io/v1beta1' },
    'no request': { ...review(), request: null },
    'deep nesting': `{"request":${'['.repeat(100_000)}${']'.repeat(100_000)}}`,
    'no uid': review({ uid: '' }),
    'a long uid': review({ uid: 'x'.repeat(254) }),
    'no object': review({ object: null }),
    'an object without metadata': review({ object: { kind: 'Box', metadata: 'x' } }),
    'no old object': review({ operation: 'UPDATE', object, oldObject: [] }),
    'an unknown operation': review({ operation: 'DROP' }),
    'another resource': review({ resource: { group: '', version: 'v1', resource: 'pods' } }),
    'another version of the resource': review({
      resource: { group: GROUP, version: 'v2', resource: 'boxes' },
    }),
    'a subresource that is not declared': review({ subResource: 'status' }),
  };
  for (const [what, body] of Object.entries(bad)) {
    test(`${what} is refused`, async () => {
      const { send, lines } = reviewerOf(
        new Webhooks().validates(BOXES_V1, () => assert.fail('called')),
      );
      const { status } = await send(VALIDATE, body);
      assert.equal(status, 400);
      assert.deepEqual(
        lines.map(({ level }) => level),
        [1],
      );
    });
  }

  test('duplicate keys are refused, and __proto__ is data', async () => {
    const seen: unknown[] = [];
    const { send } = reviewerOf(
      new Webhooks().validates(BOXES_V1, (one) => void seen.push(one.spec)),
    );
    const text = JSON.stringify(review());
    const hostile = '"spec":{"__proto__":{"size":"9x9","admin":true},';
    assert.equal((await send(VALIDATE, text.replace('"spec":{', hostile))).status, 200);
    assert.equal(JSON.stringify(seen), '[{"__proto__":{"size":"9x9","admin":true},"size":"2x3"}]');
    assert.equal((seen[0] as { admin?: boolean }).admin, undefined);
    for (const repeated of ['"spec":null,"spec":{', '"spec":{"a":[{"b":1,"b":1}],']) {
      const { status } = await send(VALIDATE, text.replace('"spec":{', repeated));
      assert.equal(status, 400);
    }
    assert.equal(seen.length, 1);
  });

  test('members with wrong types count as absent', async () => {
    const seen: AdmissionRequest[] = [];
    const { send } = reviewerOf(
      new Webhooks().validates(BOXES_V1, (_, request) => void seen.push(request)),
    );
    const uid = 'x'.repeat(253);
    const wrong = { uid, userInfo: [], options: 'x', name: 7, namespace: {}, dryRun: 'yes' };
    assert.equal((await send(VALIDATE, review(wrong))).status, 200);
    const { user, options, name, namespace, isDryRun } = seen[0]!;
    assert.deepEqual(
      [user.groups, options, name, namespace, isDryRun],
      [[], {}, '', undefined, false],
    );
  });
});

describe('memory', () => {
  const reviewing = () => {
    const started: string[] = [];
    const done: (() => void)[] = [];
    const webhooks = new Webhooks().validates(BOXES_V1, ({ metadata: { name = '' } }) => {
      started.push(name);
      return new Promise((resolve) => {
        done.push(() => resolve());
      });
    });
    return { started, done, webhooks };
  };
  const named = (name: string, spec: object = {}) =>
    review({ object: { kind: 'Box', metadata: { name }, spec } });
  /** A body that is not small. */
  const large = (name: string) => named(name, { size: 'x'.repeat(64 * 1024) });

  test('a body whose values need too much memory is refused before it is parsed', async () => {
    const { webhooks, started, done } = reviewing();
    const { send } = reviewerOf(webhooks, { bytes: 40_000 });
    const values = (count: number) => named('x', { tags: Array.from({ length: count }, () => 1) });
    void send(VALIDATE, values(400));
    await settle();
    assert.deepEqual(started, ['x']);
    done[0]?.();
    const { status } = await send(VALIDATE, `${JSON.stringify(values(1000))}]`);
    assert.equal(status, 413);
  });

  test('a review waits until others end, and is refused for a retry after 5 s', async () => {
    const { webhooks, started, done } = reviewing();
    const { send, clock, lines } = reviewerOf(webhooks, { bytes: 100_000 });
    const answers = ['a', 'b', 'c'].map((name) => send(VALIDATE, large(name)));
    await settle();
    assert.deepEqual(started, ['a']);
    done[0]?.();
    assert.equal((await answers[0])?.status, 200);
    await settle();
    assert.deepEqual(started, ['a', 'b']);
    await clock.advance(5000);
    const { status, headers } = (await answers[2])!;
    assert.deepEqual([status, headers], [429, { 'retry-after': '1' }]);
    assert.equal(lines.at(-1)?.level, 1);
    done[1]?.();
    assert.equal((await answers[1])?.status, 200);
    assert.equal(clock.pending, 0);
  });

  test('small bodies do not wait for large ones', async () => {
    const { webhooks, started, done } = reviewing();
    const { send } = reviewerOf(webhooks, { bytes: 100_000 });
    const answers = [large('a'), large('b'), named('c')].map((body) => send(VALIDATE, body));
    await settle();
    assert.deepEqual(started, ['a', 'c']);
    for (let at = 0; at < 3; at++) {
      done[at]?.();
      await settle();
    }
    assert.deepEqual(
      (await Promise.all(answers)).map(({ status }) => status),
      [200, 200, 200],
    );
  });

  test('a defaulter needs memory for a draft and a patch', async () => {
    const started: (string | undefined)[] = [];
    const webhooks = new Webhooks().defaults(BOXES_V1, ({ metadata: { name } }) => {
      started.push(name);
      return new Promise(() => undefined);
    });
    const { send } = reviewerOf(webhooks, { bytes: 300_000 });
    for (const name of ['a', 'b']) void send(MUTATE, large(name));
    await settle();
    assert.deepEqual(started, ['a']);
  });
});

test('a review is a span with the parent of the API server, in whose context the function runs', async () => {
  const spans: unknown[][] = [];
  const span = {
    setAttributes: (attributes: object) => spans.push(['attributes', attributes]),
    setStatus: ({ code }: { code: number }) => spans.push(['status', code]),
    recordException: (exception: Error | string) => spans.push(['exception', String(exception)]),
    end: () => spans.push(['end']),
  };
  let active: unknown;
  const tracing: OpenTelemetryApi = {
    ROOT_CONTEXT: {},
    trace: {
      getTracer: () => ({
        startSpan: (name, { kind }, context) => {
          spans.push([name, kind, context]);
          return span;
        },
      }),
      setSpan: (context) => ({ ...context, isSpan: true }),
    },
    context: {
      with: (context, call) => {
        active = context;
        return call();
      },
    },
    propagation: { inject: () => undefined, extract: (_, headers) => headers },
  };
  const seen: unknown[] = [];
  const webhooks = new Webhooks().validates(BOXES_V1, () => {
    seen.push(active);
    throw new Error('broken');
  });
  const body = Buffer.from(JSON.stringify(review()));
  const { signal } = new AbortController();
  await new Reviewer(webhooks.entries(), { tracing }).review({
    path: VALIDATE,
    body,
    timeout: undefined,
    headers: { traceparent: '00-1' },
    signal,
  });
  assert.deepEqual(seen, [{ traceparent: '00-1', isSpan: true }]);
  assert.deepEqual(spans, [
    [`POST ${VALIDATE}`, 1, { traceparent: '00-1' }],
    ['attributes', { 'http.response.status_code': 500 }],
    ['exception', 'Error: broken'],
    ['status', 2],
    ['end'],
  ]);
});

describe('conversion', () => {
  const webhooks = new Webhooks()
    .converts(BOXES_V1, BOXES_V2, {
      up: ({ spec }) => {
        const [width, height] = (spec?.size ?? '').split('x').map(Number);
        return { spec: { width, height, tags: spec?.tags } };
      },
      down: ({ spec, metadata }) => ({
        spec: { size: `${spec?.width}x${spec?.height}`, tags: spec?.tags },
        metadata: {
          labels: { ...metadata.labels, converted: 'yes' },
          annotations: { ...metadata.annotations, from: 'v2' },
        },
      }),
    })
    .converts(BOXES_V3, BOXES_V2, {
      up: ({ spec }) => ({ spec }),
      down: ({ spec }) => ({ spec }),
    });
  const convert = (version: string, objects: unknown) => ({
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'ConversionReview',
    request: { uid: 'u2', desiredAPIVersion: `${GROUP}/${version}`, objects },
  });
  const v2 = {
    ...box(undefined, { uid: 'a', annotations: { b: 'c' } }),
    apiVersion: `${GROUP}/v2`,
  };

  test('objects are converted through the hub, and keep their metadata', async () => {
    const { send } = reviewerOf(webhooks);
    const v1 = box('2x3', { uid: 'a', annotations: { b: 'c' } });
    const { response } = await send('/convert', convert('v3', [v1, v2]));
    assert.equal(response.result?.status, 'Success');
    assert.deepEqual(response.convertedObjects, [
      { ...v1, apiVersion: `${GROUP}/v3`, spec: { width: 2, height: 3 } },
      { ...v2, apiVersion: `${GROUP}/v3` },
    ]);
    const down = await send('/convert', convert('v1', [{ ...v2, spec: { width: 4, height: 5 } }]));
    assert.deepEqual(down.response.convertedObjects, [
      {
        ...box('4x5', {
          uid: 'a',
          annotations: { b: 'c', from: 'v2' },
          labels: { converted: 'yes' },
        }),
      },
    ]);
  });

  test('an object that cannot be converted fails the review, which names it', async () => {
    const throwing = new Webhooks().converts(BOXES_V1, BOXES_V2, {
      up: () => {
        throw new Error('no size');
      },
      down: (() => Promise.resolve({})) as unknown as () => object,
    });
    const { send, lines, metrics } = reviewerOf(throwing);
    const messages = [];
    for (const [version, object] of [
      ['v2', box('secret')],
      ['v1', { ...v2 }],
      ['v4', box('2x3')],
      ['v2', { ...box('2x3'), kind: 'Crate' }],
      ['v2', 7],
    ] as const) {
      const { status, response } = await send('/convert', convert(version, [object]));
      assert.equal(status, 200);
      assert.deepEqual(response.convertedObjects, []);
      assert.equal(response.result?.status, 'Failure');
      messages.push(response.result.message);
    }
    assert.deepEqual(messages, [
      `cannot convert Box "default/x" from ${GROUP}/v1 to ${GROUP}/v2: no size`,
      `cannot convert Box "default/x" from ${GROUP}/v2 to ${GROUP}/v1: the conversion did not return an object`,
      `cannot convert Box "default/x" from ${GROUP}/v1 to ${GROUP}/v4: the version v4 is not declared`,
      `cannot convert Crate "default/x" from ${GROUP}/v1 to ${GROUP}/v2: no conversion is declared`,
      `cannot convert a value that is not an object to ${GROUP}/v2: it is not an object`,
    ]);
    assert.match(await metrics(), /^controller_runtime_conversion_webhook_panics_total 5$/m);
    assert.doesNotMatch(JSON.stringify(lines), /secret/);
    const same = await send('/convert', convert('v1', [box('2x3')]));
    assert.deepEqual(same.response.convertedObjects, [box('2x3')]);
    const request = { uid: 'u2', desiredAPIVersion: 'other.example.com/v2', objects: [box('2x3')] };
    const other = await send('/convert', { ...convert('v2', []), request });
    assert.match(other.response.result?.message ?? '', /no conversion is declared$/);
    const long = { ...box('2x3'), kind: 'x'.repeat(10_000) };
    const { response } = await send('/convert', convert('v2', [long]));
    assert.equal(response.result?.message?.length, 4096);
  });

  test('a request without objects or version is refused', async () => {
    const { send } = reviewerOf(webhooks);
    assert.equal((await send('/convert', convert('v1', {}))).status, 400);
    const { request, ...rest } = convert('v1', []);
    assert.equal(
      (await send('/convert', { ...rest, request: { ...request, uid: 1 } })).status,
      400,
    );
    assert.equal((await send('/convert', review())).status, 400);
    assert.equal((await send('/other', convert('v1', []))).status, 404);
  });
});

test('refused requests to other paths are logged without their path', () => {
  const { log, lines } = recordingLogger([], 4);
  const webhooks = new Webhooks();
  const reviewer = new Reviewer(webhooks.entries(), { clock: new FakeClock(), log });
  reviewer.refused({ path: '/hostile', status: 404, reason: '404 not found', address: '10.0.0.1' });
  reviewer.flush();
  assert.deepEqual(
    lines.map(({ fields }) => fields['webhook']),
    ['unknown'],
  );
});

test('a rejection has the reason of its code only if that is 403', () => {
  assert.equal(new AdmissionDenied('no').reason, 'Forbidden');
  assert.equal(new AdmissionDenied('no', { code: 422 }).reason, undefined);
  assert.equal(new AdmissionDenied('no', { code: 422, reason: 'Invalid' }).reason, 'Invalid');
});
