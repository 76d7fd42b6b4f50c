import { SCAN_MEMORY } from '../../src/client/json-scanner.ts';

/** Returns an expression with one bit for each of 64 bytes, set if `test` is true for the byte. */
function bits(test: (bytes: string) => string): string {
  const part = (at: number) =>
    `(i64.shl (i64.extend_i32_u (i8x16.bitmask ${test(`(local.get $bytes${at})`)}))
      (i64.const ${16 * at}))`;
  return `(i64.or (i64.or ${part(0)} ${part(1)}) (i64.or ${part(2)} ${part(3)}))`;
}

function is(sign: string, bytes: string): string {
  return `(i8x16.eq ${bytes} (i8x16.splat (i32.const ${sign.charCodeAt(0)})))`;
}

/** As `is`, for `{` and `[`, or `}` and `]`: they differ in one bit, which no other character has. */
function isBracket(sign: '{' | '}', bytes: string): string {
  return is(sign, `(v128.or ${bytes} (i8x16.splat (i32.const 0x20)))`);
}

const not = (value: string) => `(i64.xor ${value} (i64.const -1))`;
const set = (name: string, value: string) => `(local.set $${name} ${value})`;
const get = (name: string) => `(local.get $${name})`;

const emit = `
  (i32.store ${get('tape')} (i32.add ${get('at')} ${get('base')}))
  ${set('tape', `(i32.add ${get('tape')} (i32.const 4))`)}`;
const emitIfShallow = `(if (i32.le_s ${get('depth')} ${get('limit')}) (then ${emit}))`;

/**
 * Finds the structure of JSON in blocks of 64 bytes with the method of simdjson (Langdale, Lemire: "Parsing
 * Gigabytes of JSON per Second"): quotes that are not escaped, then by a prefix XOR the bytes inside strings,
 * then brackets, commas and colons outside of them.
 *
 * `scan` continues with the next `length` bytes of a text. It writes `base` plus the offset of each sign up
 * to the nesting depth `limit`, and returns their number; -1 if a bracket closes that was not opened.
 */
export const JSON_SCAN = `
(module
  (memory (export "memory") ${SCAN_MEMORY.pages})
  (func (export "scan")
    (param $length i32) (param $limit i32) (param $base i32) (result i32)
    (local $block i32) (local $left i32) (local $at i32) (local $tape i32) (local $sign i32)
    (local $depth i32) (local $deepest i32) (local $inside i64) (local $escape i64)
    (local $bytes0 v128) (local $bytes1 v128) (local $bytes2 v128) (local $bytes3 v128)
    (local $valid i64) (local $quotes i64) (local $slashes i64) (local $follows i64) (local $carry i64)
    (local $brackets i64) (local $marks i64) (local $todo i64)
    ${set('depth', `(i32.load (i32.const ${SCAN_MEMORY.depth}))`)}
    ${set('deepest', `(i32.load (i32.const ${SCAN_MEMORY.deepest}))`)}
    ${set('inside', `(i64.load (i32.const ${SCAN_MEMORY.inside}))`)}
    ${set('escape', `(i64.load (i32.const ${SCAN_MEMORY.escape}))`)}
    ${set('tape', `(i32.const ${SCAN_MEMORY.tape})`)}
    ${set('block', `(i32.const ${SCAN_MEMORY.input})`)}
    ${set('base', `(i32.sub ${get('base')} (i32.const ${SCAN_MEMORY.input}))`)}
    ${set('left', get('length'))}
    (block $done
      (loop $next
        (br_if $done (i32.le_s ${get('left')} (i32.const 0)))
        ${set('bytes0', `(v128.load ${get('block')})`)}
        ${set('bytes1', `(v128.load offset=16 ${get('block')})`)}
        ${set('bytes2', `(v128.load offset=32 ${get('block')})`)}
        ${set('bytes3', `(v128.load offset=48 ${get('block')})`)}
        ${set('valid', '(i64.const -1)')}
        (if (i32.lt_s ${get('left')} (i32.const 64)) (then
          ${set('valid', `(i64.sub (i64.shl (i64.const 1) (i64.extend_i32_u ${get('left')})) (i64.const 1))`)}))
        ${set('quotes', `(i64.and ${get('valid')} ${bits((bytes) => is('"', bytes))})`)}
        ${set('slashes', `(i64.and ${get('valid')} ${bits((bytes) => is('\\', bytes))})`)}
        (if (i64.eqz (i64.or ${get('slashes')} ${get('escape')})) (then) (else
          ${set('slashes', `(i64.and ${get('slashes')} ${not(get('escape'))})`)}
          ${set('follows', `(i64.or (i64.shl ${get('slashes')} (i64.const 1)) ${get('escape')})`)}
          ${set(
            'carry',
            `(i64.add ${get('slashes')}
              (i64.and ${get('slashes')} (i64.and (i64.const 0xaaaaaaaaaaaaaaaa) ${not(get('follows'))})))`,
          )}
          ${set('escape', `(i64.extend_i32_u (i64.lt_u ${get('carry')} ${get('slashes')}))`)}
          ${set(
            'quotes',
            `(i64.and ${get('quotes')} ${not(
              `(i64.and ${get('follows')}
                (i64.xor (i64.const 0x5555555555555555) (i64.shl ${get('carry')} (i64.const 1))))`,
            )})`,
          )}))
        ${[1, 2, 4, 8, 16, 32]
          .map((shift) =>
            set(
              'quotes',
              `(i64.xor ${get('quotes')} (i64.shl ${get('quotes')} (i64.const ${shift})))`,
            ),
          )
          .join('\n')}
        ${set('inside', `(i64.xor ${get('quotes')} ${get('inside')})`)}
        ${set('valid', `(i64.and ${get('valid')} ${not(get('inside'))})`)}
        ${set('inside', `(i64.shr_s ${get('inside')} (i64.const 63))`)}
        ${set(
          'brackets',
          `(i64.and ${get('valid')}
            ${bits((bytes) => `(v128.or ${isBracket('{', bytes)} ${isBracket('}', bytes)})`)})`,
        )}
        ${set(
          'marks',
          `(i64.and ${get('valid')} ${bits((bytes) => `(v128.or ${is(',', bytes)} ${is(':', bytes)})`)})`,
        )}
        (block $scanned
          (loop $sign
            ${set('todo', get('brackets'))}
            (if (i32.le_s ${get('depth')} ${get('limit')}) (then
              ${set('todo', `(i64.or ${get('brackets')} ${get('marks')})`)}))
            (br_if $scanned (i64.eqz ${get('todo')}))
            ${set('at', `(i32.add ${get('block')} (i32.wrap_i64 (i64.ctz ${get('todo')})))`)}
            ${set('todo', not(`(i64.xor ${get('todo')} (i64.sub ${get('todo')} (i64.const 1)))`))}
            ${set('brackets', `(i64.and ${get('brackets')} ${get('todo')})`)}
            ${set('marks', `(i64.and ${get('marks')} ${get('todo')})`)}
            ${set('sign', `(i32.load8_u ${get('at')})`)}
            (if (i32.lt_u ${get('sign')} (i32.const ${'@'.charCodeAt(0)})) (then ${emit}) (else
              (if (i32.and ${get('sign')} (i32.const 4))
                (then
                  ${emitIfShallow}
                  ${set('depth', `(i32.sub ${get('depth')} (i32.const 1))`)}
                  (if (i32.lt_s ${get('depth')} (i32.const 0)) (then (return (i32.const -1)))))
                (else
                  ${set('depth', `(i32.add ${get('depth')} (i32.const 1))`)}
                  (if (i32.gt_s ${get('depth')} ${get('deepest')}) (then
                    ${set('deepest', get('depth'))}))
                  ${emitIfShallow}))))
            (br $sign)))
        ${set('block', `(i32.add ${get('block')} (i32.const 64))`)}
        ${set('left', `(i32.sub ${get('left')} (i32.const 64))`)}
        (br $next)))
    (i32.store (i32.const ${SCAN_MEMORY.depth}) ${get('depth')})
    (i32.store (i32.const ${SCAN_MEMORY.deepest}) ${get('deepest')})
    (i64.store (i32.const ${SCAN_MEMORY.inside}) ${get('inside')})
    (i64.store (i32.const ${SCAN_MEMORY.escape}) ${get('escape')})
    (i32.shr_u (i32.sub ${get('tape')} (i32.const ${SCAN_MEMORY.tape})) (i32.const 2))))`;
