import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { CONFIG_MAPS } from '../../../../src/api/builtin.ts';
import { commandLine } from '../../../../src/cli/command-line.ts';
import { replayFile } from '../../../../src/cli/commands/replay.ts';
import type { ProgramOptions } from '../../../../src/cli/program/program.ts';
import { Controller } from '../../../../src/manager/controller.ts';
import type { ControllerKit } from '../../../../src/manager/controller-kit.ts';
import type { TimelineReport } from '../../../../src/serving/page/timeline-report.ts';
import { silentLogger } from '../../../../src/util/logger.ts';
import { done } from '../../../../src/workqueue/outcome.ts';
import { linesOfFile, recordings, recordRun } from '../../../support/recorded-run.ts';

/** Records an event for each ConfigMap. */
const seen = (reason: string) => (kit: ControllerKit) => {
  const maps = kit.informers.for(CONFIG_MAPS);
  const recorder = kit.events.recorder('seen');
  return new Controller(kit, {
    name: 'seen',
    kind: 'ConfigMap',
    sync: async (key) => {
      const map = maps.lister.get(key);
      if (map) recorder.normal(map, reason, 'Saw it');
      return done();
    },
  }).for(maps);
};

const program = (reason: string): ProgramOptions => ({
  name: 'watcher',
  version: '1.2.3',
  controllers: { seen: { resource: CONFIG_MAPS, build: seen(reason) } },
});

async function run(options: ProgramOptions, ...argv: readonly string[]) {
  const lines: string[] = [];
  const print = (text: string) => void lines.push(text);
  const code = await commandLine(
    options,
    ['replay', ...argv],
    {},
    {
      print,
      warn: print,
      colour: false,
      logging: { write: print, now: () => 0, pid: 1 },
    },
  );
  return { code, text: lines.join('\n') };
}

describe('replay', () => {
  const at = recordings();
  const record = async () => {
    const file = at('maps.ndjson');
    const metadata = { namespace: 'default', name: 'a' };
    await recordRun({ controllers: [seen('Seen')], file }, async ({ client, clock }) => {
      await clock.advance(1000);
      await client.create(CONFIG_MAPS, { apiVersion: 'v1', kind: 'ConfigMap', metadata });
      await clock.advance(1000);
    });
    return file;
  };

  it('exits with 0 if nothing differs, and with 1 if a sync does', async () => {
    const file = await record();
    const same = await run(program('Seen'), file);
    assert.deepEqual([same.code, same.text.endsWith(': no sync differs')], [0, true], same.text);
    const other = await run(program('Watched'), file);
    assert.equal(other.code, 1);
    assert.match(other.text, /ConfigMap default\/a added\)\n {2}additional: event Normal Watched/);
    const story = await run(program('Seen'), file, '--story');
    assert.match(story.text, /seen {10}records Normal Seen of ConfigMap default\/a: Saw it/);
  });

  it('serves a page with the recording and what differs', async () => {
    const file = await record();
    const stop = new AbortController();
    const printed = Promise.withResolvers<string>();
    const context = {
      program: program('Watched'),
      print: printed.resolve,
      log: silentLogger,
      logging: { verbosity: 0 },
      signal: stop.signal,
    };
    const flags = { story: false, web: true, 'web-port': 0 };
    const running = replayFile([file], flags, context);
    const [url = ''] = /http:\S+\/debug\//.exec(await printed.promise) ?? [];
    const report = (await (await fetch(`${url}timeline`)).json()) as TimelineReport;
    assert.equal((await fetch(`${url}timeline/entry?at=-1`)).status, 404);
    stop.abort();
    assert.equal(await running, 0);
    assert.ok(report.entries.some(({ isDifferent }) => isDifferent));
  });

  it('exits with 2 if the file cannot be read, is no recording, or has another version', async () => {
    const file = at('bad');
    const header = linesOfFile(await record())[0] ?? '';
    for (const [content, message] of [
      ['', /is not a recording/],
      ['{"kind":"Pod"}\n', /is not a recording/],
      [header.replace('"version":1', '"version":2'), /version 2 of the format.*reads version 1/],
    ] as const) {
      writeFileSync(file, content);
      const { code, text } = await run(program('Seen'), file);
      assert.equal(code, 2, text);
      assert.match(text, message);
    }
    const valid = await record();
    for (const files of [[at('missing')], [], [valid, valid]])
      assert.equal((await run(program('Seen'), ...files)).code, 2);
  });
});
