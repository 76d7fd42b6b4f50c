import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { parse } from 'yaml';
import type { Json, Reply } from './api.ts';
import { Api, assertRejected } from './api.ts';
import { CRDS } from './objects.ts';
import { skipBefore } from '../support/skip.ts';

/** Before 1.35, messages do not contain the value, and CEL has fewer functions. */
const BEFORE_1_35 = skipBefore(35);

let api: Api;

before(async () => {
  api = await Api.start();
});

after(() => api.close());

/** Returns a CRD for one test, with this schema for `spec` and these rules at the root. */
function ruled(plural: string, spec: Json, more: Json = {}): Json {
  const kind = `${plural[0]?.toUpperCase()}${plural.slice(1, -1)}`;
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.rules.example.com` },
    spec: {
      group: 'rules.example.com',
      scope: 'Namespaced',
      names: { plural, singular: plural.slice(0, -1), kind },
      versions: [
        {
          name: 'v1',
          served: true,
          storage: true,
          subresources: { status: {} },
          schema: {
            openAPIV3Schema: {
              type: 'object',
              ...more,
              properties: { spec, ...more.properties },
            },
          },
        },
      ],
    },
  };
}

function pathOf(crd: Json): string {
  return `/apis/rules.example.com/v1/namespaces/default/${crd.spec.names.plural}`;
}

function object(crd: Json, name: string, spec: Json, more: Json = {}): Json {
  const { kind } = crd.spec.names;
  return { apiVersion: 'rules.example.com/v1', kind, metadata: { name }, spec, ...more };
}

/** Returns the field, type and message of each cause. */
function causesOf({ status, text, body }: Reply): string[] {
  assert.equal(status, 422, text);
  return body.details.causes.map(({ field, message }: Json) => `${field}: ${message}`);
}

const SPEC = {
  type: 'object',
  properties: {
    count: { type: 'integer' },
    ratio: { type: 'number' },
    name: { type: 'string', maxLength: 20 },
    on: { type: 'boolean' },
    none: { type: 'string', maxLength: 5 },
    nothing: { type: 'string', maxLength: 5, nullable: true },
    'dash-ed.dot/slash__twice': { type: 'string', maxLength: 5 },
    namespace: { type: 'string', maxLength: 5 },
    port: { 'x-kubernetes-int-or-string': true, maxLength: 10 },
    share: { 'x-kubernetes-int-or-string': true, maxLength: 10 },
    when: { type: 'string', format: 'date-time' },
    day: { type: 'string', format: 'date' },
    wait: { type: 'string', format: 'duration' },
    raw: { type: 'string', format: 'byte', maxLength: 20 },
    list: { type: 'array', maxItems: 5, items: { type: 'integer' } },
    words: { type: 'array', maxItems: 5, items: { type: 'string', maxLength: 10 } },
    set: {
      type: 'array',
      maxItems: 5,
      'x-kubernetes-list-type': 'set',
      items: { type: 'string', maxLength: 10 },
    },
    parts: {
      type: 'array',
      maxItems: 5,
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['name'],
      items: {
        type: 'object',
        required: ['name'],
        properties: { name: { type: 'string', maxLength: 10 }, size: { type: 'integer' } },
      },
    },
    labels: {
      type: 'object',
      maxProperties: 5,
      additionalProperties: { type: 'string', maxLength: 10 },
    },
    inner: { type: 'object', properties: { a: { type: 'integer' }, b: { type: 'integer' } } },
    free: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
    template: {
      type: 'object',
      'x-kubernetes-embedded-resource': true,
      'x-kubernetes-preserve-unknown-fields': true,
    },
  },
};

const VALUE = {
  count: 3,
  ratio: 2,
  name: 'héllo wörld',
  on: true,
  nothing: null,
  'dash-ed.dot/slash__twice': 'x',
  namespace: 'ns',
  port: 8080,
  share: '50%',
  when: '2024-02-29T12:30:15.123456789Z',
  day: '2024-02-29',
  wait: '1h30m',
  raw: 'aGVsbG8=',
  list: [3, 1, 2],
  words: ['b', 'a'],
  set: ['x', 'y'],
  parts: [
    { name: 'a', size: 1 },
    { name: 'b', size: 2 },
  ],
  labels: { app: 'web', constructor: 'c', 'a.b/c': 'd' },
  inner: { a: 1 },
  free: { any: 'thing' },
  template: {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'p', labels: { a: 'b' } },
    spec: { x: 1 },
  },
};

/** Expressions that are true for `VALUE` on any server. */
const TRUE = [
  // Numbers
  'self.count == 3 && self.count != 4 && -self.count < 0 && self.count % 2 == 1 && 7 / 2 == 3',
  '-7 / 2 == -3 && -7 % 3 == -1',
  'self.ratio == 2.0 && self.ratio > 1 && 1 < self.ratio && self.ratio / 4.0 == 0.5',
  '1u + 2u == 3u && 1u < 2 && 2.5 > 1u && dyn(1) == 1.0 && dyn(1u) == dyn(1)',
  '9223372036854775807 > 0 && -9223372036854775808 < 0 && 0xff == 255 && 1e3 == 1000.0',
  'int(2.9) == 2 && int("-7") == -7 && uint(3) == 3u && double("1.5") == 1.5 && int(3u) == 3',
  'string(1.0) == "1" && string(0.1) == "0.1" && string(1e100) == "1e+100" && string(true) == "true"',
  'string(-1) == "-1" && string(1u) == "1" && bool("true") && !bool("f")',
  'string(1234567.0) == "1.234567e+06" && string(123456.0) == "123456" && string(0.00001) == "1e-05"',
  '"%s".format([[1.0, b"a", timestamp(0)]]) == "[1.000000, b\\"a\\", timestamp(\\"1970-01-01T00:00:00Z\\")]"',
  '"%.0f %.1f %x".format([2.5, 0.05, -255]) == "2 0.1 -ff" && string(duration("100ns")) == "0.0000001s"',
  // Logic
  'true || 1 / 0 == 1',
  '1 / 0 == 1 || true',
  '!(false && 1 / 0 == 1) && !(1 / 0 == 1 && false)',
  'self.on ? self.count == 3 : self.count / 0 == 1',
  '[1, 0].exists(x, 1 / x == 1) && ![0, 1].all(x, 1 / x == 2)',
  // Fields
  'has(self.name) && !has(self.none) && !has(self.nothing) && !has(self.inner.b)',
  'self.dash__dash__ed__dot__dot__slash__slash__underscores__twice == "x"',
  'self.__namespace__ == "ns"',
  'has(self.namespace) && self.namespace == "ns"',
  'self.template.metadata.name == "p" && self.template.kind == "Pod" && !has(self.template.metadata.generateName)',
  'self.?none.orValue("z") == "z" && self.?inner.?a.value() == 1 && !self.?inner.b.hasValue()',
  'self.inner == self.inner && self.free == self.free && self.template == self.template',
  // Types
  'type(self.port) == int && type(self.share) == string && type(self.count) == int',
  'type(self.port) == int ? self.port > 80 : int(self.port.replace("%", "")) > 1',
  'type(self.when) == google.protobuf.Timestamp && type(self.list) == list && type(self.labels) == map',
  'type(type(1)) == type && type(null) == null_type && type(b"a") == bytes && type(1.5) == double',
  '[1].all(string, string == 1) && [{"IP": 1}].all(net, net.IP == 1) && type(ip("1.2.3.4")) == net.IP',
  // Strings
  'self.name.size() == 11 && size(self.name) == 11 && self.name.contains("wör") && "ab" + "cd" == "abcd"',
  'self.name.startsWith("hé") && self.name.endsWith("ld") && "a" < "b" && "Z" < "a"',
  'self.name.substring(6) == "wörld" && self.name.substring(1, 4) == "éll" && self.name.charAt(1) == "é"',
  'self.name.indexOf("wörld") == 6 && self.name.lastIndexOf("l") == 9 && "abc".indexOf("z") == -1',
  '"hello mellow".indexOf("ello", 2) == 7 && "hello mellow".lastIndexOf("ello", 6) == 1',
  '"a,b,c".split(",") == ["a", "b", "c"] && "a,b,c".split(",", 2) == ["a", "b,c"] && "".split(",") == [""]',
  '"abc".split("") == ["a", "b", "c"] && "a,b".split(",", 0) == [] && "a,b".split(",", -1).size() == 2',
  '"abab".replace("a", "x") == "xbxb" && "abab".replace("a", "x", 1) == "xbab" && "ab".replace("", "-") == "-a-b-"',
  '" x ".trim() == "x" && "TacoCÆt".lowerAscii() == "tacocÆt" && "TacoCÆt Xii".upperAscii() == "TACOCÆT XII"',
  'self.words.join("-") == "b-a" && [].join() == "" && strings.quote("a\\"b\\n") == "\\"a\\\\\\"b\\\\n\\""',
  '"%s has %d, %.2f, %x, %b, %o%%".format(["x", 3, 1.5, 255, 5, 8]) == "x has 3, 1.50, ff, 101, 10%"',
  '"%s %s %s".format([[1, 2], {"a": "b"}, true]) == "[1, 2] {\\"a\\":\\"b\\"} true"',
  '"%e".format([1234.5]) == "1.234500×10⁰³" && "%f".format([-1234.5]) == "-1,234.500000" && "%X".format(["hello"]) == "68656C6C6F"',
  'self.share.matches("^[0-9]+%$") && matches("abc", "b") && !"abc".matches("^b")',
  '"a1b22".find("[0-9]+") == "1" && "a1b22".findAll("[0-9]+") == ["1", "22"] && "abc".find("x") == ""',
  '"123 456".findAll("\\\\d+", 1) == ["123"] && "abc".findAll("\\\\d") == []',
  'r"\\d" == "\\\\d" && "\\u00e9" == "é" && """a"b""".size() == 3',
  'b"hello" == self.raw && bytes("hello") == self.raw && string(self.raw) == "hello" && self.raw.size() == 5',
  // Lists
  'self.list[0] == 3 && self.list.size() == 3 && 2 in self.list && !(9 in self.list)',
  'self.list + [4] == [3, 1, 2, 4] && self.list != [1, 2, 3] && self.list[?9].orValue(7) == 7',
  'self.list.all(x, x > 0) && self.list.exists(x, x == 2) && self.list.exists_one(x, x > 2)',
  'self.list.map(x, x * 2) == [6, 2, 4] && self.list.map(x, x > 1, x + 1) == [4, 3] && self.list.filter(x, x > 1) == [3, 2]',
  'self.list.all(i, v, i < 3 && v > 0) && self.list.exists(i, v, i == 1 && v == 1) && self.list.existsOne(i, v, v > 2)',
  'self.list.transformList(i, v, i * 10 + v) == [3, 11, 22] && self.list.transformMap(i, v, v)[2] == 2',
  'self.list.sum() == 6 && self.list.min() == 1 && self.list.max() == 3 && !self.list.isSorted() && [1, 2].isSorted()',
  'self.list.indexOf(1) == 1 && [1, 2, 1].lastIndexOf(1) == 2 && [1.5, 2.5].sum() == 4.0 && self.words.max() == "b"',
  'self.list.sort() == [1, 2, 3] && self.list.sortBy(x, -x) == [3, 2, 1] && self.list.reverse() == [2, 1, 3]',
  'self.list.slice(1, 3) == [1, 2] && [1, 1, 2].distinct() == [1, 2] && lists.range(3) == [0, 1, 2]',
  '[[1, 2], [3]].flatten() == [1, 2, 3] && [[[1], [2]], [[3]]].flatten(2) == [1, 2, 3]',
  'sets.contains([1, 2, 3], [2, 1]) && sets.equivalent([1, 2], [2, 1, 1]) && sets.intersects([1], [1, 2])',
  'self.set == ["y", "x"] && self.set == self.set',
  'self.set + ["y", "z"] == ["x", "y", "z"] && (self.set + ["x"]).size() == 2',
  'self.parts.exists(p, p.name == "b" && p.size == 2) && self.parts.map(p, p.size).sum() == 3',
  'self.parts[0].name == "a" && self.parts.filter(p, has(p.size)).size() == 2',
  // Maps
  'self.labels.app == "web" && self.labels["app"] == "web" && "constructor" in self.labels && !("toString" in self.labels)',
  'self.labels.size() == 3 && self.labels.all(k, self.labels[k] != "") && self.labels["a.b/c"] == "d"',
  'self.labels.all(k, v, k != v) && self.labels.exists(k, k == "app") && has(self.labels.app) && !has(self.labels.nope)',
  'self.labels.transformMap(k, v, v.size()).app == 3 && {"a": 1, "b": 2}.transformMapEntry(k, v, {v: k})[1] == "a"',
  '{"a": 1}["a"] == 1 && {1: "x"}[1] == "x" && {"a": 1} == {"a": 1} && {"a": 1} != {"a": 2} && {}.size() == 0',
  '[{"a": 1}].all(m, m.a == 1) && {"a": [1, 2]}.a[1] == 2',
  // Time
  'self.when.getFullYear() == 2024 && self.when.getMonth() == 1 && self.when.getDate() == 29 && self.when.getDayOfMonth() == 28',
  'self.when.getHours() == 12 && self.when.getMinutes() == 30 && self.when.getSeconds() == 15 && self.when.getMilliseconds() == 123',
  'self.when.getDayOfWeek() == 4 && self.when.getDayOfYear() == 59 && self.when.getHours("+02:00") == 14',
  'self.when.getHours("America/New_York") == 7 && self.when > timestamp("2024-02-29T12:30:15.123456788Z")',
  'self.day == timestamp("2024-02-29T00:00:00Z") && self.when - self.day > duration("12h")',
  'self.wait == duration("90m") && self.wait.getHours() == 1 && self.wait.getMinutes() == 90 && self.wait.getSeconds() == 5400',
  'self.day + duration("24h") == timestamp("2024-03-01T00:00:00Z") && duration("1.5s").getMilliseconds() == 1500',
  'string(timestamp("2024-01-01T00:00:00Z")) == "2024-01-01T00:00:00Z" && string(duration("90m")) == "5400s"',
  'int(timestamp("1970-01-01T00:01:00Z")) == 60 && timestamp(60) == timestamp("1970-01-01T00:01:00Z")',
  // Optional values
  'optional.of(1).hasValue() && !optional.none().hasValue() && optional.of(1).orValue(2) == 1',
  '[1, 2].first().value() == 1 && [1, 2].last().value() == 2 && ![].first().hasValue() && ![].last().hasValue()',
  'optional.unwrap([optional.of(1), optional.none()]) == [1] && [optional.none(), optional.of("a")].unwrapOpt() == ["a"]',
  '[?optional.of(1), ?optional.none(), 2] == [1, 2] && [ ?optional.none()].size() == 0 && [[1][?1], [1][?0]] == [optional.none(), optional.of(1)]',
  'optional.of([1])[0].value() == 1 && !optional.of({"a": 1})[?"b"].hasValue()',
  'optional.none().orValue(2) == 2 && optional.of(1).or(optional.of(2)).value() == 1 && !optional.ofNonZeroValue(0).hasValue()',
  'self.?count.optMap(x, x + 1).value() == 4 && self.?none.optFlatMap(x, optional.of(x)).hasValue() == false',
  // Kubernetes
  'quantity("1Gi").isGreaterThan(quantity("1000Mi")) && quantity("500m").add(quantity("0.5")).compareTo(quantity("1")) == 0',
  'quantity("1k").asInteger() == 1000 && !quantity("1500m").isInteger() && isQuantity("2M") && !isQuantity("2x")',
  'sign(quantity("2").sub(3)) == -1 && quantity("1500m").asApproximateFloat() == 1.5 && quantity("1024Ki") == quantity("1Mi")',
  'ip("192.168.0.1").family() == 4 && ip("::1").isLoopback() && isIP("2001:db8::1") && !isIP("1.2.3") && !isIP("01.2.3.4")',
  'ip.isCanonical("2001:db8::abcd") && !ip.isCanonical("2001:DB8::ABCD") && string(ip("2001:db8:0:0:1:0:0:1")) == "2001:db8::1:0:0:1"',
  'ip("8.8.8.8").isGlobalUnicast() && ip("169.254.1.1").isLinkLocalUnicast() && ip("0.0.0.0").isUnspecified() && ip("224.0.0.1").isLinkLocalMulticast()',
  'cidr("10.0.0.0/8").containsIP("10.1.2.3") && cidr("10.0.0.0/8").containsCIDR("10.1.0.0/16") && !cidr("10.0.0.0/8").containsIP("11.0.0.1")',
  'cidr("192.168.0.1/24").masked() == cidr("192.168.0.0/24") && cidr("10.0.0.0/8").prefixLength() == 8 && isCIDR("::/0") && !isCIDR("10.0.0.0/33")',
  'cidr("10.0.0.0/8").ip() == ip("10.0.0.0") && string(cidr("10.0.0.0/8")) == "10.0.0.0/8"',
  'url("https://user@host.io:80/a%20b?x=1&x=2&y=3#f").getHost() == "host.io:80" && isURL("/path") && !isURL("nope")',
  'url("https://[::1]:80/").getHostname() == "::1" && url("https://[::1]:80/").getPort() == "80" && url("https://h/a b").getEscapedPath() == "/a%20b"',
  'url("https://h/?x=1&x=2&y=3").getQuery()["x"] == ["1", "2"] && url("HTTPS://h/").getScheme() == "https"',
  '!format.dns1123Label().validate("a-b").hasValue() && format.dns1123Label().validate("A_b").hasValue()',
  'format.named("dns1123Subdomain").value().validate("a.b").hasValue() == false && !format.named("nope").hasValue()',
  '!format.uuid().validate("123e4567-e89b-12d3-a456-426614174000").hasValue() && format.date().validate("x").value() == ["invalid date"]',
  'semver("1.2.3").isLessThan(semver("1.10.0")) && semver("1.0.0-rc.1").compareTo(semver("1.0.0")) == -1 && !isSemver("v1.0.0")',
  String.raw`.self.count == self.count && r"\" == "\\" && br'\n' == b"\\n" && .5 == 0.5 && -.5 < 0.0`,
  // Messages of protobuf
  'google.protobuf.Duration{seconds: 5, nanos: 7}.getMilliseconds() == 5000 && google.protobuf.Timestamp{seconds: 60} == timestamp("1970-01-01T00:01:00Z")',
  'google.protobuf.Int32Value{value: self.count} + 1 == 4 && google.protobuf.StringValue{} == "" && google.protobuf.BoolValue{} != null && type(google.protobuf.UInt64Value{}) == uint',
  '[google.protobuf.Int64Value{value: 1}, 2] == [1, 2] && google.protobuf.FloatValue{value: 0.1} != 0.1 && google.protobuf.Int32Value{?value: optional.none()} == 0',
  'google.protobuf.Struct{fields: {"a": 1}} == {"a": 1.0} && !has(google.protobuf.Struct{}.a) && google.protobuf.ListValue{values: [1, 2]}[1] == 2.0',
  'google.protobuf.Value{} == null && google.protobuf.Value{list_value: [1.0]} == [1.0] && google.protobuf.Value{string_value: "a"} == "a"',
  'type(duration("1s")) == google.protobuf.Duration && type(google.protobuf.Empty{}) == google.protobuf.Empty',
  'isSemver("v1.0", true) && semver("v01.1", true).minor() == 1 && semver("1.2.3").major() == 1 && semver("1.2.3").patch() == 3',
];

test('expressions evaluate as on kube-apiserver', BEFORE_1_35, async () => {
  const rules = TRUE.map((rule) => ({ rule }));
  const crd = ruled('truths', { ...SPEC, 'x-kubernetes-validations': rules });
  await api.install(crd);
  await api.made(api.post(pathOf(crd), object(crd, 'x', VALUE)));
});

test(
  'a failing expression reports the error, and a false one reports the rule',
  BEFORE_1_35,
  async () => {
    const cases: readonly (readonly [rule: string, message: string])[] = [
      ['self.count > 3', 'Invalid value: failed rule: self.count > 3'],
      [
        'self.none == "x"',
        'Invalid value: "object": no such key: none evaluating rule: self.none == "x"',
      ],
      [
        'self.labels["nope"] == "x"',
        'Invalid value: "object": no such key: nope evaluating rule: self.labels["nope"] == "x"',
      ],
      [
        'self.list[5] == 1',
        'Invalid value: "object": index out of bounds: 5 evaluating rule: self.list[5] == 1',
      ],
      [
        'self.count / 0 == 1',
        'Invalid value: "object": division by zero evaluating rule: self.count / 0 == 1',
      ],
      [
        'self.count % 0 == 1',
        'Invalid value: "object": modulus by zero evaluating rule: self.count % 0 == 1',
      ],
      [
        'self.count + 9223372036854775807 > 0',
        'Invalid value: "object": integer overflow evaluating rule: self.count + 9223372036854775807 > 0',
      ],
      [
        'self.share > 5',
        `Invalid value: "object": 'no such overload': call arguments did not match a supported operator, function or macro signature for rule: self.share > 5`,
      ],
      [
        'ip("x").family() == 4',
        'Invalid value: "object": IP Address "x" parse error during conversion from string: ParseAddr("x"): unable to parse IP evaluating rule: ip("x").family() == 4',
      ],
      [
        '"abc".substring(4) == ""',
        'Invalid value: "object": index out of range: 4 evaluating rule: "abc".substring(4) == ""',
      ],
      [
        'optional.none().value() == 1',
        'Invalid value: "object": optional.none() dereference evaluating rule: optional.none().value() == 1',
      ],
      [
        '[].max() == 1',
        'Invalid value: "object": max called on empty list evaluating rule: [].max() == 1',
      ],
    ];
    const rules = cases.map(([rule]) => ({ rule }));
    const crd = ruled('faults', { ...SPEC, 'x-kubernetes-validations': rules });
    await api.install(crd);
    const reply = await api.post(pathOf(crd), object(crd, 'x', VALUE));
    assert.deepEqual(
      causesOf(reply),
      cases.map(([, message]) => `spec: ${message}`),
    );
  },
);

const COMPILE: readonly (readonly [rule: string, problem: string])[] = [
  [
    'optional.of([1])["a"].hasValue()',
    `ERROR: <input>:1:17: found no matching overload for '_[_]' applied to '(optional_type(list(int)), string)'\n | optional.of([1])["a"].hasValue()\n | ................^`,
  ],
  [
    'optional.of(1)[?0].hasValue()',
    "ERROR: <input>:1:15: found no matching overload for '_[?_]' applied to '(optional_type(int), int)'\n | optional.of(1)[?0].hasValue()\n | ..............^",
  ],
  [
    'duration(3) == self.wait',
    "ERROR: <input>:1:9: found no matching overload for 'duration' applied to '(int)'\n | duration(3) == self.wait\n | ........^",
  ],
  [
    '[1].includes(1)',
    "ERROR: <input>:1:13: undeclared reference to 'includes' (in container '')\n | [1].includes(1)\n | ............^",
  ],
  [
    '[?1].size() == 1',
    "ERROR: <input>:1:3: expected type 'optional_type(int)' but found 'int'\n | [?1].size() == 1\n | ..^",
  ],
  ['self.nope', "ERROR: <input>:1:5: undefined field 'nope'\n | self.nope\n | ....^"],
  [
    'self.count == "x"',
    `ERROR: <input>:1:12: found no matching overload for '_==_' applied to '(int, string)'\n | self.count == "x"\n | ...........^`,
  ],
  [
    'foo(1)',
    "ERROR: <input>:1:4: undeclared reference to 'foo' (in container '')\n | foo(1)\n | ...^",
  ],
  [
    'self.name.frob()',
    "ERROR: <input>:1:15: undeclared reference to 'frob' (in container '')\n | self.name.frob()\n | ..............^",
  ],
  [
    'this.count == 1',
    "ERROR: <input>:1:1: undeclared reference to 'this' (in container '')\n | this.count == 1\n | ^",
  ],
  [
    'self.list.all(x, x)',
    `ERROR: <input>:1:18: expected type 'bool' but found 'int'\n | self.list.all(x, x)\n | .................^`,
  ],
  [
    'self.count.all(x, true)',
    `ERROR: <input>:1:5: expression of type 'int' cannot be range of a comprehension (must be list, map, or dynamic)\n | self.count.all(x, true)\n | ....^`,
  ],
  [
    '[1, "a"].size() == 2',
    `ERROR: <input>:1:5: expected type 'int' but found 'string'\n | [1, "a"].size() == 2\n | ....^`,
  ],
  [
    '[1, dyn(1)].size() == {"a": 1, "b": "c", "d": true}.size()',
    `ERROR: <input>:1:8: expected type 'int' but found 'dyn'\n | [1, dyn(1)].size() == {"a": 1, "b": "c", "d": true}.size()\n | .......^\nERROR: <input>:1:37: expected type 'int' but found 'string'\n | [1, dyn(1)].size() == {"a": 1, "b": "c", "d": true}.size()\n | ....................................^\nERROR: <input>:1:47: expected type 'int' but found 'bool'\n | [1, dyn(1)].size() == {"a": 1, "b": "c", "d": true}.size()\n | ..............................................^`,
  ],
  [
    'type(self.name) in [string, int]',
    "ERROR: <input>:1:29: expected type 'type(string)' but found 'type(int)'\n | type(self.name) in [string, int]\n | ............................^",
  ],
  [
    'kubernetes.Quantity == int',
    "ERROR: <input>:1:1: undeclared reference to 'kubernetes' (in container '')\n | kubernetes.Quantity == int\n | ^",
  ],
  [
    'self.list.sortBy(x, [x]) == []',
    "ERROR: <input>:1:17: found no matching overload for '@sortByAssociatedKeys' applied to 'list(int).(list(list(int)))'\n | self.list.sortBy(x, [x]) == []\n | ................^",
  ],
  [
    'self.list.filter(x, x) == []',
    "ERROR: <input>:1:17: found no matching overload for '_?_:_' applied to '(int, list(int), list(int))'\n | self.list.filter(x, x) == []\n | ................^",
  ],
  [
    'self.count.size() == 1 && self.nope',
    `ERROR: <input>:1:16: found no matching overload for 'size' applied to 'int.()'\n | self.count.size() == 1 && self.nope\n | ...............^\nERROR: <input>:1:31: undefined field 'nope'\n | self.count.size() == 1 && self.nope\n | ..............................^`,
  ],
  [
    'self.name.matches("(")',
    `ERROR: <input>:1:19: invalid matches argument\n | self.name.matches("(")\n | ..................^`,
  ],
  [
    'duration("x") == self.wait',
    `ERROR: <input>:1:10: invalid duration argument\n | duration("x") == self.wait\n | .........^`,
  ],
  [
    '"%d".format([1.5]) == ""',
    `ERROR: <input>:1:14: error during formatting: decimal clause can only be used on integers, was given double\n | "%d".format([1.5]) == ""\n | .............^`,
  ],
  [
    '"%s".format([]) == ""',
    `ERROR: <input>:1:12: index 0 out of range\n | "%s".format([]) == ""\n | ...........^`,
  ],
  [
    '"%s".format([1, 2]) == ""',
    `ERROR: <input>:1:12: too many arguments supplied to string.format (expected 1, got 2)\n | "%s".format([1, 2]) == ""\n | ...........^`,
  ],
  [
    'self.count && true',
    `ERROR: <input>:1:5: expected type 'bool' but found 'int'\n | self.count && true\n | ....^`,
  ],
  [
    'true ? 1 : "a"',
    `ERROR: <input>:1:6: found no matching overload for '_?_:_' applied to '(bool, int, string)'\n | true ? 1 : "a"\n | .....^`,
  ],
  [
    'jsonpatch.escapeKey("a") == "a"',
    `ERROR: <input>:1:1: undeclared reference to 'jsonpatch' (in container '')\n | jsonpatch.escapeKey("a") == "a"\n | ^\nERROR: <input>:1:20: undeclared reference to 'escapeKey' (in container '')\n | jsonpatch.escapeKey("a") == "a"\n | ...................^`,
  ],
  [
    'google.protobuf.Duration{second: 5} == duration("5s")',
    `ERROR: <input>:1:32: undefined field 'second'\n | google.protobuf.Duration{second: 5} == duration("5s")\n | ...............................^`,
  ],
  [
    'google.protobuf.Int32Value{value: "a"} == 1',
    `ERROR: <input>:1:33: expected type of field 'value' is 'int' but provided type is 'string'\n | google.protobuf.Int32Value{value: "a"} == 1\n | ................................^`,
  ],
  [
    'self.count.foo == 1',
    `ERROR: <input>:1:11: type 'int' does not support field selection\n | self.count.foo == 1\n | ..........^`,
  ],
];

test('a default is valid by the rules of its schema', BEFORE_1_35, async () => {
  const count = { type: 'integer', 'x-kubernetes-validations': [{ rule: 'self > 1' }] };
  const withDefault = (value: number) =>
    ruled('defaults', {
      type: 'object',
      default: { count: value },
      properties: { count },
      'x-kubernetes-validations': [{ rule: 'self.count != 3' }],
    });
  const path = 'spec.validation.openAPIV3Schema.properties[spec].default';
  for (const [value, causes] of [
    [2, undefined],
    [1, [`${path}.count: Invalid value: 1: failed rule: self > 1`]],
    [3, [`${path}: Invalid value: failed rule: self.count != 3`]],
  ] as const) {
    const reply = await api.post(`${CRDS}?dryRun=All`, withDefault(value));
    if (causes) assert.deepEqual(causesOf(reply), causes);
    else assert.equal(reply.status, 201, reply.text);
  }
});

test('a rule that does not compile is rejected with its CRD', async () => {
  const rules = COMPILE.map(([rule]) => ({ rule }));
  const crd = ruled('compiles', { ...SPEC, 'x-kubernetes-validations': rules });
  const path = 'spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations';
  assert.deepEqual(
    causesOf(await api.post(`${CRDS}?dryRun=All`, crd)),
    COMPILE.map(
      ([rule, problem], index) =>
        `${path}[${index}].rule: Invalid value: {"Rule":${JSON.stringify(rule).replaceAll('&', '\\u0026')},"Message":"","MessageExpression":"","Reason":null,"FieldPath":"","OptionalOldSelf":null}: compilation failed: ${problem}`,
    ),
  );
});

test('a rule with a syntax error is rejected with its CRD', async () => {
  const malformed = [
    'size(self.list,) == 1',
    'true ? true ? true : true : true',
    '-!true',
    '!-1 == 1',
    'self..count == 1',
    'self.count == 0X1',
    `rb'a' == b'a'`,
    'Object{"a": 1} == Object{}',
    'has(self.count, self.count)',
  ];
  const rules = malformed.map((rule) => ({ rule }));
  const crd = ruled('malformed', { ...SPEC, 'x-kubernetes-validations': rules });
  const causes = causesOf(await api.post(`${CRDS}?dryRun=All`, crd));
  assert.deepEqual(
    causes.map((cause) => /\[(\d+)\]\.rule: .*compilation failed/.exec(cause)?.[1]),
    malformed.map((_, index) => String(index)),
  );
});

test('a rule with a conversion of a constant that fails is rejected with its CRD', async () => {
  const cases = [
    ["int('9223372036854775808') == 1", "type conversion error from 'string' to 'int'"],
    ['true || int(uint(-1)) == 1', 'unsigned integer overflow'],
    ["bool('x')", "type conversion error from 'string' to 'bool'"],
    ['int(1e30) == 1', 'integer overflow'],
    ['type(1) == google.protobuf.Any', 'reference to undefined type: google.protobuf.Any'],
    ["string(b'\\xff') == ''", 'invalid UTF-8 in bytes, cannot convert to string'],
  ] as const;
  const rules = [...cases.map(([rule]) => ({ rule })), { rule: "int('1' + 'a') == 1" }];
  const crd = ruled('constants', { ...SPEC, 'x-kubernetes-validations': rules });
  const problems = causesOf(await api.post(`${CRDS}?dryRun=All`, crd)).map((cause) =>
    cause.replace(/^.*"OptionalOldSelf":null}: /, ''),
  );
  assert.deepEqual(
    problems,
    cases.map(([, problem]) => `program instantiation failed: ${problem}`),
  );
});

test('the other fields of a rule are validated with the CRD', async () => {
  const validations = [
    { rule: 'self.count' },
    { rule: 'self.count ==', optionalOldSelf: false },
    { rule: 'true', messageExpression: '1' },
    { rule: 'true', messageExpression: 'self.nope' },
    { rule: 'true', optionalOldSelf: true },
  ];
  const items = { ...SPEC.properties.parts, 'x-kubernetes-list-type': 'atomic' } as Json;
  delete items['x-kubernetes-list-map-keys'];
  const crd = ruled('forms', {
    ...SPEC,
    properties: {
      ...SPEC.properties,
      parts: {
        ...items,
        items: { ...items.items, 'x-kubernetes-validations': [{ rule: 'self == oldSelf' }] },
      },
    },
    'x-kubernetes-validations': validations,
  });
  const path = 'spec.validation.openAPIV3Schema.properties[spec]';
  const messages = causesOf(await api.post(`${CRDS}?dryRun=All`, crd)).map((cause) =>
    cause
      .replace(/\{.*?\}/, 'RULE')
      .replace(/Syntax error: .*/s, 'Syntax error')
      .replace(path, '~'),
  );
  assert.deepEqual(messages.toSorted(), [
    '~.properties[parts].items.x-kubernetes-validations[0].rule: Invalid value: "self == oldSelf": oldSelf cannot be used on the uncorrelatable portion of the schema within spec.validation.openAPIV3Schema.properties[spec].properties[parts]',
    '~.x-kubernetes-validations[0].rule: Invalid value: RULE: cel expression must evaluate to a bool',
    '~.x-kubernetes-validations[1].optionalOldSelf: Invalid value: false: may not be set if oldSelf is not used in rule',
    '~.x-kubernetes-validations[1].rule: Invalid value: RULE: compilation failed: ERROR: <input>:1:14: Syntax error',
    '~.x-kubernetes-validations[2].messageExpression: Invalid value: RULE: messageExpression must evaluate to a string',
    "~.x-kubernetes-validations[3].messageExpression: Invalid value: RULE: messageExpression compilation failed: ERROR: <input>:1:5: undefined field 'nope'\n | self.nope\n | ....^",
    '~.x-kubernetes-validations[4].optionalOldSelf: Invalid value: true: may not be set if oldSelf is not used in rule',
  ]);
});

test('fieldPath must refer to a field, and reason must be a known value', async () => {
  const crd = ruled('paths', {
    ...SPEC,
    'x-kubernetes-validations': [{ rule: 'true', fieldPath: '.nope' }],
  });
  assertRejected(await api.post(`${CRDS}?dryRun=All`, crd), {
    code: 422,
    reason: 'Invalid',
    message:
      'CustomResourceDefinition.apiextensions.k8s.io "paths.rules.example.com" is invalid: spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].fieldPath: Invalid value: ".nope": must be a valid path',
  });
});

test('a failed rule reports its message, reason and field path', BEFORE_1_35, async () => {
  const crd = ruled(
    'reasons',
    {
      ...SPEC,
      properties: {
        ...SPEC.properties,
        count: {
          type: 'integer',
          'x-kubernetes-validations': [
            { rule: 'self > 5', message: ' too small ' },
            { rule: 'self > 6', messageExpression: '"%d is not above 6".format([self])' },
            { rule: 'self > 7', messageExpression: 'string(self / 0)' },
            { rule: 'self > 8', messageExpression: '" "', message: 'instead' },
          ],
        },
        words: {
          ...SPEC.properties.words,
          items: {
            type: 'string',
            maxLength: 10,
            'x-kubernetes-validations': [{ rule: 'self != "b"', reason: 'FieldValueDuplicate' }],
          },
        },
        labels: {
          ...SPEC.properties.labels,
          additionalProperties: {
            type: 'string',
            maxLength: 10,
            'x-kubernetes-validations': [{ rule: 'self != "d"' }],
          },
        },
      },
      'x-kubernetes-validations': [
        { rule: '!self.on', message: 'off!', reason: 'FieldValueForbidden', fieldPath: '.on' },
        { rule: 'has(self.none)', reason: 'FieldValueRequired', fieldPath: ".inner['b']" },
        { rule: '!self.on', message: 'dup', reason: 'FieldValueDuplicate', fieldPath: '.labels.x' },
      ],
    },
    { 'x-kubernetes-validations': [{ rule: 'self.metadata.name == "y"' }] },
  );
  await api.install(crd);
  const { count, on, inner, words, labels } = VALUE;
  const reply = await api.post(pathOf(crd), object(crd, 'x', { count, on, inner, words, labels }));
  assert.deepEqual(causesOf(reply).toSorted(), [
    '<nil>: Invalid value: failed rule: self.metadata.name == "y"',
    'spec.count: Invalid value: 3: 3 is not above 6',
    'spec.count: Invalid value: 3: failed rule: self > 7',
    'spec.count: Invalid value: 3: instead',
    'spec.count: Invalid value: 3: too small',
    'spec.inner.b: Required value: failed rule: has(self.none)',
    'spec.labels[a.b/c]: Invalid value: "d": failed rule: self != "d"',
    'spec.labels[x]: Duplicate value',
    'spec.on: Forbidden: off!',
    'spec.words[0]: Duplicate value: "b"',
  ]);
  const reasons: string[] = reply.body.details.causes.map(({ reason }: Json) => reason);
  assert.deepEqual([...new Set(reasons)].toSorted(), [
    'FieldValueDuplicate',
    'FieldValueForbidden',
    'FieldValueInvalid',
    'FieldValueRequired',
  ]);
});

test('rules are evaluated only if types and limits are valid', async () => {
  const crd = ruled('limits', {
    ...SPEC,
    'x-kubernetes-validations': [{ rule: 'self.count > 100' }],
  });
  await api.install(crd);
  assert.deepEqual(causesOf(await api.post(pathOf(crd), object(crd, 'x', { count: 'a' }))), [
    'spec.count: Invalid value: "string": spec.count in body must be of type integer: "string"',
    '<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation',
  ]);
});

test('transition rules compare with the previous value, if it existed', BEFORE_1_35, async () => {
  const crd = ruled('steps', {
    ...SPEC,
    properties: {
      ...SPEC.properties,
      name: {
        type: 'string',
        maxLength: 20,
        'x-kubernetes-validations': [{ rule: 'self == oldSelf', message: 'name is immutable' }],
      },
      count: {
        type: 'integer',
        'x-kubernetes-validations': [
          {
            rule: 'oldSelf.hasValue() ? self >= oldSelf.value() : self == 1',
            optionalOldSelf: true,
            message: 'starts at 1, only grows',
          },
        ],
      },
      parts: {
        ...SPEC.properties.parts,
        items: {
          ...SPEC.properties.parts.items,
          'x-kubernetes-validations': [{ rule: 'self.size >= oldSelf.size', message: 'shrinks' }],
        },
      },
    },
  });
  await api.install(crd);
  const path = pathOf(crd);
  const [a, b] = VALUE.parts;
  assert.deepEqual(causesOf(await api.post(path, object(crd, 'x', { count: 2 }))), [
    'spec.count: Invalid value: 2: starts at 1, only grows',
  ]);
  await api.made(api.post(path, object(crd, 'x', { count: 1, parts: [a, b] })));
  const patch = (spec: Json) => api.patch(`${path}/x`, { spec });
  await api.made(patch({ name: 'first' }));
  assert.deepEqual(causesOf(await patch({ name: 'second' })), [
    'spec.name: Invalid value: "second": name is immutable',
  ]);
  await api.made(patch({ name: null }));
  await api.made(patch({ name: 'second', count: 3 }));
  assert.deepEqual(causesOf(await patch({ count: 2 })), [
    'spec.count: Invalid value: 2: starts at 1, only grows',
  ]);
  // Items are matched by their keys, independent of their position.
  await api.made(patch({ parts: [{ name: 'c', size: 0 }, b, { ...a, size: 5 }] }));
  assert.deepEqual(causesOf(await patch({ parts: [{ ...a, size: 4 }] })), [
    'spec.parts[0]: Invalid value: shrinks',
  ]);
});

test('an object of another kind is validated by the rules only', async () => {
  // The presence of a value of the wrong type is an error.
  const rules = ['self.count > 5', '!has(self.on) || self.count > 5'].map((rule) => ({ rule }));
  const rule = { 'x-kubernetes-validations': rules };
  const crd = ruled('kinds', { ...SPEC, ...rule });
  await api.install(crd);
  const draft = { ...object(crd, 'x', { count: 3, on: 1 }), kind: 'Other' };
  assert.deepEqual(causesOf(await api.post(pathOf(crd), draft)), [
    `kind: Invalid value: "Other": must be ${crd.spec.names.kind}`,
    'spec: Invalid value: failed rule: self.count > 5',
    'spec: Invalid value: "object": invalid data, expected bool, got int64 evaluating rule: !has(self.on) || self.count > 5',
  ]);
});

test('ratcheting ignores errors in unchanged values', BEFORE_1_35, async () => {
  const spec: Json = {
    ...SPEC,
    properties: {
      ...SPEC.properties,
      count: { type: 'integer' },
      label: { type: 'string' },
      rows: {
        type: 'array',
        items: {
          type: 'object',
          required: ['key'],
          properties: { key: { type: 'string' }, text: { type: 'string' } },
        },
        'x-kubernetes-list-type': 'map',
        'x-kubernetes-list-map-keys': ['key'],
      },
    },
  };
  const crd = ruled('ratchets', spec);
  await api.install(crd);
  const path = pathOf(crd);
  const rows = [{ key: 'a', text: 'long' }];
  await api.made(
    api.post(path, object(crd, 'x', { count: 3, list: [1], inner: { a: 1 }, label: 'long', rows })),
  );
  const stricter = await api.made(api.get(`${CRDS}/${crd.metadata.name}`));
  const properties = stricter.spec.versions[0].schema.openAPIV3Schema.properties.spec.properties;
  properties.count['x-kubernetes-validations'] = [{ rule: 'self > 5' }];
  properties.inner['x-kubernetes-validations'] = [{ rule: 'self.a > 5' }];
  properties.list.items['x-kubernetes-validations'] = [{ rule: 'self > 5' }];
  properties.label.maxLength = 3;
  properties.rows.items.properties.text.maxLength = 3;
  await api.made(api.put(`${CRDS}/${crd.metadata.name}`, stricter));
  await api.until('the new rules are enforced', async () => {
    const reply = await api.post(`${path}?dryRun=All`, object(crd, 'y', { count: 3 }));
    return reply.status === 422;
  });
  await api.made(api.patch(`${path}/x`, { spec: { on: true } }));
  assert.deepEqual(
    causesOf(await api.patch(`${path}/x`, { spec: { count: 4, inner: { b: 1 } } })).toSorted(),
    [
      'spec.count: Invalid value: 4: failed rule: self > 5',
      'spec.inner: Invalid value: failed rule: self.a > 5',
    ],
  );
  assert.deepEqual(causesOf(await api.patch(`${path}/x`, { spec: { list: [1, 2] } })), [
    'spec.list[0]: Invalid value: 1: failed rule: self > 5',
    'spec.list[1]: Invalid value: 2: failed rule: self > 5',
  ]);
  // Violations of the schema, likewise.
  const changed = { label: 'longer', rows: [{ key: 'b' }, ...rows] };
  assert.equal(
    causesOf(await api.patch(`${path}/x`, { spec: changed }))[0],
    'spec.label: Too long: may not be more than 3 bytes',
  );
  await api.made(api.patch(`${path}/x`, { spec: { rows: changed.rows } }));
});

test('ratcheting needs the keys of items and the schemas of fields', BEFORE_1_35, async () => {
  const crd = ruled('uncorrelated', {
    ...SPEC,
    properties: {
      ...SPEC.properties,
      lines: {
        type: 'array',
        items: { type: 'object', properties: { key: { type: 'string' } } },
      },
      free: {
        type: 'object',
        properties: { size: { type: 'integer' } },
        'x-kubernetes-preserve-unknown-fields': true,
      },
    },
  });
  await api.install(crd);
  const path = pathOf(crd);
  const specs: Json = {
    lines: { count: 3, lines: [{}] },
    unknown: { count: 3, free: { other: 1 } },
    known: { count: 3, free: {} },
  };
  for (const [name, spec] of Object.entries(specs)) {
    await api.made(api.post(path, object(crd, name, spec)));
  }
  const stricter = await api.made(api.get(`${CRDS}/${crd.metadata.name}`));
  const { lines, free } =
    stricter.spec.versions[0].schema.openAPIV3Schema.properties.spec.properties;
  Object.assign(lines, { 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['key'] });
  lines.items.required = ['key'];
  free.required = ['size'];
  await api.made(api.put(`${CRDS}/${crd.metadata.name}`, stricter));
  await api.until('the new schema is enforced', async () => {
    const reply = await api.post(`${path}?dryRun=All`, object(crd, 'y', specs.known));
    return reply.status === 422;
  });
  const change = (name: string) => api.patch(`${path}/${name}`, { spec: { on: true } });
  assert.deepEqual(causesOf(await change('lines')), ['spec.lines[0].key: Required value']);
  assert.deepEqual(causesOf(await change('unknown')), ['spec.free.size: Required value']);
  // A write of the status validates the status alone.
  await api.made(api.patch(`${path}/unknown/status`, { metadata: { labels: { a: 'b' } } }));
  await api.made(change('known'));
});

test('a status update evaluates the rules with the complete object', BEFORE_1_35, async () => {
  const crd = ruled('statuses', SPEC, {
    properties: {
      status: {
        type: 'object',
        properties: { phase: { type: 'string', maxLength: 10 } },
        'x-kubernetes-validations': [
          { rule: '!has(oldSelf.phase) || has(self.phase)', message: 'phase stays' },
        ],
      },
    },
    'x-kubernetes-validations': [
      {
        rule: '!has(self.status) || !has(self.status.phase) || self.status.phase != "Big" || self.spec.count > 10',
        message: 'only large ones are Big',
      },
      {
        rule: '!has(oldSelf.status) || !has(oldSelf.status.phase) || self.spec == oldSelf.spec',
        message: 'spec is frozen once there is a phase',
      },
    ],
  });
  await api.install(crd);
  const path = pathOf(crd);
  await api.made(api.post(path, object(crd, 'x', { count: 3 }, { status: { phase: 'Big' } })));
  const status = (value: Json) => api.patch(`${path}/x/status`, { status: value });
  assert.deepEqual(causesOf(await status({ phase: 'Big' })), [
    '<nil>: Invalid value: only large ones are Big',
  ]);
  await api.made(api.patch(`${path}/x`, { spec: { count: 4 } }));
  await api.made(status({ phase: 'Small' }));
  assert.deepEqual(causesOf(await api.patch(`${path}/x`, { spec: { count: 5 } })), [
    '<nil>: Invalid value: spec is frozen once there is a phase',
  ]);
  assert.deepEqual(causesOf(await status({ phase: null })), ['status: Invalid value: phase stays']);
  await api.made(api.patch(`${path}/x`, { metadata: { labels: { a: 'b' } } }));
});

test('a rule whose estimated cost exceeds the limit is rejected with its CRD', async () => {
  const unbounded = {
    type: 'object',
    properties: { list: { type: 'array', items: { type: 'string' } } },
    'x-kubernetes-validations': [
      { rule: 'self.list.all(x, self.list.all(y, x == y))' },
      { rule: 'self.list.all(x, x.contains("a"))' },
    ],
  };
  const [first, second, ...rest] = causesOf(
    await api.post(`${CRDS}?dryRun=All`, ruled('costs', unbounded)),
  );
  const path = 'spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations';
  const advice =
    '(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)';
  assert.equal(
    first,
    `${path}[0].rule: Forbidden: estimated rule cost exceeds budget by factor of more than 100x ${advice}`,
  );
  assert.match(
    second ?? '',
    /\[1\]\.rule: Forbidden: estimated rule cost exceeds budget by factor of more than 100x/,
  );
  assert.deepEqual(rest, [
    `${path}[0].rule: Forbidden: contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema`,
    `${path}[1].rule: Forbidden: contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema`,
    `spec.validation.openAPIV3Schema: Forbidden: x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema exceeds budget by factor of more than 100x ${advice}`,
  ]);
});

/** Schemas with an estimated cost slightly below and above the limit, sensitive to each unit of cost. */
test('cost estimates equal those of kube-apiserver', async () => {
  const list = (maxItems: number, items: Json) => ({ type: 'array', maxItems, items });
  const text = (maxLength: number) => ({ type: 'string', maxLength });
  const schema = {
    type: 'object',
    properties: {
      ints: list(2_000_000, { type: 'integer' }),
      texts: list(100_000, text(1000)),
      long: text(10_000_000),
      map: { type: 'object', maxProperties: 1_000_000, additionalProperties: text(10) },
    },
    'x-kubernetes-validations': [
      { rule: 'self.ints.all(x, x > 0)' },
      { rule: 'self.ints.exists(x, x == 1)' },
      { rule: 'self.ints.exists_one(x, x == 1)' },
      { rule: 'self.ints.map(x, x + 1).size() > 0' },
      { rule: 'self.ints.filter(x, x > 1).size() > 0' },
      { rule: 'self.texts.all(x, x.startsWith("a") || x == "abc")' },
      { rule: 'self.texts.all(x, x.matches("^[a-z]*$"))' },
      { rule: 'self.long.matches("^[a-z]*$")' },
      { rule: 'self.long.contains("abcdefghijklmnopqrstuvwxyz")' },
      { rule: 'self.map.all(k, self.map[k] != "x" && has(self.long))' },
      { rule: 'self.long.split(",").all(x, x.size() > 1)' },
      { rule: 'self.ints.slice(0, 3).map(x, [x]).all(x, x[0] > 1)' },
      { rule: 'self.long.startsWith(oldSelf.?long.orValue(""))', optionalOldSelf: true },
      {
        rule: 'oldSelf.value().long.contains("abcdefghijklmnopqrstuvwxyz")',
        optionalOldSelf: true,
      },
    ],
  };
  const messages = causesOf(await api.post(`${CRDS}?dryRun=All`, ruled('estimates', schema)));
  const factors = messages.flatMap((cause) => {
    const [, index, factor] =
      /\[(\d+)\]\.rule: Forbidden: estimated .* by factor of (.*?) \(/.exec(cause) ?? [];
    return index === undefined ? [] : [`${index}: ${factor}`];
  });
  assert.deepEqual(factors, [
    '0: 1.000000x',
    '1: 1.000000x',
    '3: 2.8x',
    '4: 3.0x',
    '6: 8.1x',
    '8: 1.200000x',
    '10: 24.8x',
    '12: more than 100x',
  ]);
});

/** Each factor is a tenth of the cost of the rule. */
test('the name of a type costs as much as a variable', async () => {
  const rules = [
    'string == string',
    'type(self) == google.protobuf.Timestamp',
    '[type(self)] == [string]',
    'type(type(self)) == type && self == self',
    '[string].all(t, t == string)',
  ];
  const schema = {
    type: 'array',
    maxItems: 1_000_000,
    items: {
      type: 'string',
      maxLength: 70,
      'x-kubernetes-validations': rules.map((rule) => ({ rule: `[1, 2].size() == 1 && ${rule}` })),
    },
  };
  const messages = causesOf(await api.post(`${CRDS}?dryRun=All`, ruled('types', schema)));
  assert.deepEqual(
    messages.flatMap(
      (cause) => /(?<=\.rule: .*)(?:[\d.]+(?=x )|undefined type.*)/.exec(cause) ?? [],
    ),
    ['4.2', '4.3', '3.6', '7.4', 'undefined type: t'],
  );
});

test('a rule is stopped when it exceeds the runtime cost limit', BEFORE_1_35, async () => {
  const crd = ruled('stops', {
    type: 'object',
    properties: { list: { type: 'array', maxItems: 1000, items: { type: 'integer' } } },
    'x-kubernetes-validations': [
      { rule: 'self.list.all(x, self.list.all(y, x + y >= 0))', message: 'sums' },
      { rule: 'false' },
    ],
  });
  await api.install(crd);
  const list = Array.from({ length: 1000 }, (_, index) => index);
  assert.deepEqual(causesOf(await api.post(pathOf(crd), object(crd, 'x', { list }))), [
    `spec: Invalid value: "object": 'operation cancelled: actual cost limit exceeded': no further validation rules will be run due to call cost exceeds limit for rule: sums`,
  ]);
  assert.deepEqual(causesOf(await api.post(pathOf(crd), object(crd, 'x', { list: [1] }))), [
    'spec: Invalid value: failed rule: false',
  ]);
});

const crds = join(import.meta.dirname, '../../crds');

test('the CRDs of this repository are accepted with all rules', async () => {
  const files = globSync('*.yaml', { cwd: crds });
  assert.ok(files.length >= 4);
  for (const file of files) {
    const { status, text } = await api.post(
      `${CRDS}?dryRun=All&fieldValidation=Strict`,
      crdIn(file),
    );
    assert.equal(status, 201, `${file}: ${text}`);
  }
});

test('the spec of an At is immutable after its command has started', async () => {
  await api.install(crdIn('ats.cnat.programming-kubernetes.info.yaml'));
  const path = '/apis/cnat.programming-kubernetes.info/v1alpha1/namespaces/default/ats';
  await api.made(
    api.post(path, {
      apiVersion: 'cnat.programming-kubernetes.info/v1alpha1',
      kind: 'At',
      metadata: { name: 'x' },
      spec: { schedule: '2030-01-01T00:00:00Z', command: 'echo A' },
    }),
  );
  const edit = (command: string) => api.patch(`${path}/x`, { spec: { command } });
  const enter = (phase: string) => api.patch(`${path}/x/status`, { status: { phase } });
  await api.made(edit('echo B'));
  await api.made(enter('PENDING'));
  await api.made(edit('echo C'));
  for (const phase of ['RUNNING', 'DONE']) {
    await api.made(enter(phase));
    assert.deepEqual(causesOf(await edit('echo D')), [
      '<nil>: Forbidden: the command has started; create another At instead',
    ]);
  }
  await api.made(api.patch(`${path}/x`, { metadata: { labels: { still: 'mine' } } }));
});

test('a WebApp without an image requires a version that is a valid tag', BEFORE_1_35, async () => {
  await api.install(crdIn('webapps.jiajunhuang.com.yaml'));
  const path = '/apis/jiajunhuang.com/v1/namespaces/default/webapps?dryRun=All';
  const post = (spec: Json) =>
    api.post(path, {
      apiVersion: 'jiajunhuang.com/v1',
      kind: 'WebApp',
      metadata: { name: 'x' },
      spec: { replicas: 1, ...spec },
    });
  await api.made(post({ version: '1.25' }));
  await api.made(post({ version: 'not a tag', image: 'nginx:1' }));
  assert.deepEqual(causesOf(await post({ version: 'not a tag' })), [
    'spec.version: Invalid value: version is no tag of the nginx image; set image, or another version',
  ]);
});

function crdIn(file: string): Json {
  return parse(readFileSync(join(crds, file), 'utf8'));
}
