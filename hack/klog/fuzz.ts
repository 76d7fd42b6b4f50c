/**
 * Compares our log with the real klog on random calls:
 *
 *     node hack/klog/fuzz.ts [CALLS [SEED]]
 *
 * It first checks that the committed vectors equal the current output of klog, and that both quote the same
 * characters. Calls with intended differences are not generated: curated.ts lists them.
 */
import * as fc from 'fast-check';
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { isSecretName, redactText } from '../../src/util/redact.ts';
import { goQuote } from '../../src/util/go-quote.ts';
import type { Field, LogCall, Reference, Value } from './call.ts';
import { ourLines } from './call.ts';
import { whyNoKlog, withRealKlog } from './real-klog.ts';
import type { RealKlog } from './real-klog.ts';
import { comparable, VECTORS, vectorsText } from './vectors.ts';

/**
 * Characters that our log escapes and klog does not: in values of several lines, and in objects and lists.
 */
const UNSEEN = /[^\P{C}\n\t]|[\u2028\u2029]/gu;
const UNSEEN_NESTED = /[\p{C}\u2028\u2029]/gu;

/** Names with a meaning in a JSON line. */
const RESERVED: ReadonlySet<string> = new Set(['ts', 'caller', 'v', 'msg']);

const whyNot = await whyNoKlog();
if (whyNot === undefined) {
  await withRealKlog(async (klog) => {
    const isFresh = readFileSync(VECTORS, 'utf8') === (await vectorsText(klog));
    assert.ok(isFresh, `${VECTORS} is stale: run node hack/klog/vectors.ts`);
    const strange = await differentlyQuoted(klog);
    const [calls = 20_000, seed = Date.now() % 2 ** 31] = process.argv.slice(2).map(Number);
    await compare(klog, randomCalls(strange, { calls, seed }), seed);
  });
} else {
  console.log(`klog: SKIPPED, nothing was compared: ${whyNot}`);
}

/**
 * Returns the characters that only one of the two escapes, and which exist only in the newer of their two
 * versions of Unicode.
 */
async function differentlyQuoted(klog: RealKlog): Promise<ReadonlySet<number>> {
  const { unicode, ranges } = await klog.printable();
  const printable = new Set<number>();
  for (const [first, last] of ranges) for (let c = first; c <= last; c++) printable.add(c);
  const different = new Set<number>();
  const kinds = new Set<boolean>();
  for (let c = 0; c <= 0x10_ff_ff; c++) {
    if (c >= 0xd8_00 && c <= 0xdf_ff) continue;
    const text = String.fromCodePoint(c);
    const isShown = goQuote(text) === `"${text}"`;
    if (isShown === printable.has(c)) continue;
    different.add(c);
    kinds.add(isShown);
  }
  assert.ok(kinds.size < 2, 'each quotes characters that the other shows');
  const versions = `Unicode ${unicode} (Go), ${process.versions.unicode} (Node.js)`;
  console.log(`klog: quoting is the same but for ${different.size} characters; ${versions}`);
  return different;
}

async function compare(klog: RealKlog, calls: readonly LogCall[], seed: number): Promise<void> {
  const { pid, lines } = await klog.lines(calls);
  for (const [index, call] of calls.entries()) {
    const ours = ourLines(call, pid);
    const theirs = lines[index];
    const about = `seed ${seed}, call ${index}: ${JSON.stringify(call)}`;
    assert.equal(ours.text, theirs?.text, about);
    if (hasTwice(call)) continue;
    assert.deepEqual(comparable(ours.json), comparable(theirs?.json ?? ''), about);
  }
  console.log(`klog: ${calls.length} random calls, the same lines in text and JSON; seed ${seed}`);
}

function randomCalls(
  strange: ReadonlySet<number>,
  { calls, seed }: { readonly calls: number; readonly seed: number },
): LogCall[] {
  return fc.sample(callArbitrary(strange), { numRuns: calls, seed });
}

function callArbitrary(strange: ReadonlySet<number>): fc.Arbitrary<LogCall> {
  const text = textArbitrary(strange);
  const singleLine = text.filter((each) => !each.includes('\n'));
  const fields = fieldsArbitrary(text);
  const name = fc.stringMatching(/^[a-z][a-z0-9-]{0,8}$/);
  const scope = fc.oneof(fc.record({ name }), fc.record({ fields }));
  const time = fc.tuple(
    fc.integer({ min: 1970, max: 2100 }),
    ...[12, 28].map((max) => fc.integer({ min: 1, max })),
    ...[23, 59, 59, 999_999].map((max) => fc.integer({ min: 0, max })),
  );
  return fc
    .record({
      time,
      file: fc.stringMatching(/^[a-z][a-z-]{0,30}\.ts$/),
      line: fc.integer({ min: 1, max: 99_999 }),
      level: fc.integer({ min: 0, max: 6 }),
      verbosity: fc.integer({ min: 0, max: 6 }),
      scopes: fc.array(scope, { maxLength: 4 }),
      isError: fc.boolean(),
      error: fc.option(text.filter((each) => each !== '')),
      message: fc.oneof(singleLine, text),
      fields,
    })
    .map((call): LogCall => call);
}

/**
 * Returns whether a key occurs twice: klog's JSON contains it twice and ours once, so only the text is
 * compared.
 */
function hasTwice({ scopes, fields, error }: LogCall): boolean {
  const inScopes = scopes.flatMap((scope) => ('fields' in scope ? scope.fields : []));
  const keys = [...inScopes, ...fields].map(([key]) => key);
  const twice = new Set(keys).size < keys.length || keys.includes('logger');
  return twice || (error !== null && keys.includes('err'));
}

/** Texts of all characters, with many special ones, and without those that our log masks or escapes. */
function textArbitrary(strange: ReadonlySet<number>): fc.Arbitrary<string> {
  const special = fc.constantFrom(
    ...Array.from('"\\\n\n\t\r\b\f\v\u0007<>&=\' {}[],:%\u007F\u009B\u2028\uFEFF\uFFFD\uD800'),
  );
  const unit = fc.oneof(
    { weight: 4, arbitrary: fc.string({ unit: 'grapheme-ascii', minLength: 1, maxLength: 4 }) },
    { weight: 2, arbitrary: special },
    { weight: 1, arbitrary: fc.string({ unit: 'binary', minLength: 1, maxLength: 1 }) },
    { weight: 1, arbitrary: fc.string({ unit: 'grapheme', minLength: 1, maxLength: 2 }) },
  );
  return fc
    .array(unit, { maxLength: 12 })
    .map((units) => units.join(''))
    .map((text) => (text.includes('\n') ? text.replaceAll(UNSEEN, '') : text))
    .filter((text) => redactText(text) === text)
    .filter((text) => Array.from(text).every((each) => !strange.has(each.codePointAt(0) ?? 0)));
}

function fieldsArbitrary(text: fc.Arbitrary<string>): fc.Arbitrary<Field[]> {
  const key = fc
    .oneof(
      fc.constantFrom('a', 'b', 'err', 'logger', 'podUID', '__proto__', 'constructor'),
      fc.stringMatching(/^[A-Za-z_][\w./-]{0,9}$/),
    )
    .filter((each) => !isSecretName(each) && !RESERVED.has(each));
  return fc.uniqueArray(fc.tuple(key, valueArbitrary(text)), {
    maxLength: 4,
    selector: ([each]) => each,
  });
}

function valueArbitrary(text: fc.Arbitrary<string>): fc.Arbitrary<Value> {
  return fc.oneof(
    // Often equal, so that keys occur twice.
    { weight: 4, arbitrary: fc.record({ int: fc.constantFrom('1', '2') }) },
    { weight: 3, arbitrary: fc.record({ string: text }) },
    { weight: 1, arbitrary: fc.record({ error: text.filter((each) => each !== '') }) },
    {
      weight: 1,
      arbitrary: fc.record({
        duration: fc.integer({ min: -1e6, max: 1e9 }).map((us) => us / 1000),
      }),
    },
    { weight: 1, arbitrary: fc.record({ big: fc.bigInt().map(String) }) },
    { weight: 2, arbitrary: fc.record({ refs: fc.array(referenceArbitrary(), { maxLength: 3 }) }) },
    { weight: 4, arbitrary: nestedArbitrary(text) },
  );
}

/** Values that may occur in a list or an object. */
function nestedArbitrary(text: fc.Arbitrary<string>): fc.Arbitrary<Value> {
  const seen = text
    .map((each) => each.replaceAll(UNSEEN_NESTED, ''))
    .filter((each) => redactText(each) === each);
  const name = seen.filter((each) => !isSecretName(each) && !/^\d+$/.test(each));
  return fc
    .letrec<{ value: Value }>((tie) => ({
      value: fc.oneof(
        { maxDepth: 4, withCrossShrink: false },
        fc.record({ string: seen }),
        fc.record({ bool: fc.boolean() }),
        fc.constant<Value>({ null: true }),
        fc.record({ int: fc.maxSafeInteger().map(String) }),
        fc.record({ float: floatArbitrary() }),
        fc.record({ ref: referenceArbitrary() }),
        fc.record({ list: fc.array(tie('value'), { maxLength: 3 }) }),
        fc.record({ struct: membersArbitrary(name, tie('value')) }),
        fc.record({ map: membersArbitrary(name, tie('value')).map(sortedAsInGo) }),
      ),
    }))
    .value.filter((value) => !isReferences(value));
}

function membersArbitrary(
  name: fc.Arbitrary<string>,
  value: fc.Arbitrary<Value>,
): fc.Arbitrary<Field[]> {
  return fc
    .uniqueArray(fc.tuple(name, value), { maxLength: 3, selector: ([each]) => each })
    .filter((members) => !isReference(members));
}

/** Sorts by the bytes of the names. */
function sortedAsInGo(members: readonly Field[]): Field[] {
  return members.toSorted(([a], [b]) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
}

/** Returns whether our log formats the object as a reference to a Kubernetes object. */
function isReference(members: readonly Field[]): boolean {
  const names = members.map(([each]) => each);
  return names.includes('name');
}

/** Our log formats a list of references as objects; Go does not. */
function isReferences(value: Value): boolean {
  return 'list' in value && value.list.length > 0 && value.list.every((each) => 'ref' in each);
}

/** Go and JavaScript print the shortest text of a number. */
function floatArbitrary(): fc.Arbitrary<string> {
  return fc.double({ noNaN: true, noDefaultInfinity: true }).map((each) => String(each + 0));
}

function referenceArbitrary(): fc.Arbitrary<Reference> {
  const name = fc.stringMatching(/^[a-z0-9][a-z0-9.-]{0,12}$/);
  return fc.record({ namespace: fc.oneof(fc.constant(''), name), name });
}
