import { optionsOf } from './program/command.ts';
import type { Commands } from './program/command.ts';
import { environmentPrefix } from './program/program.ts';
import type { ProgramCommand, ProgramOptions } from './program/program.ts';
import { environmentVariable, flagNamed, flagParser, sortedOptions } from './flags/flag-parser.ts';
import type { Option, Options } from './flags/option.ts';

const NARROWEST = 80;
const WIDEST = 110;

/**
 * Returns the help text of `command`, which is one of `commands`. The help of the default command is also that
 * of the program and lists all commands. yargs lays it out, except for the examples: it breaks lines within words, so
 * that a command could not be copied.
 *
 * @param columns width of the terminal
 */
export async function helpText(
  program: ProgramOptions,
  commands: Commands,
  command: ProgramCommand,
  columns: number = 80,
): Promise<string> {
  const { name, description = `${name} ${ABOUT}` } = program;
  const width = Math.max(NARROWEST, Math.min(WIDEST, columns));
  const isDefault = command === commands[0];
  const about = isDefault ? description : (command.description ?? `${command.summary}.`);
  const own = [command.name, command.operands, '[flags]'].filter((word) => word !== undefined);
  const forms = isDefault ? ['[run] [flags]', 'COMMAND [flags]'] : [own.join(' ')];
  const usages = forms.map((form) => `Usage: ${name} ${form}`).join('\n');
  const end = isDefault ? more(program) : [`"${name} --help" lists all commands.`];
  // Without the name of the program before each command.
  const parser = flagParser(optionsOf(command)).scriptName('').wrap(width);
  parser.usage(`${about}\n\n${usages}`);
  for (const each of isDefault ? commands : []) parser.command(each.name, each.summary);
  parser.epilogue([...exampleLines(name, command, width), ...end].join('\n\n'));
  return parser.getHelp();
}

const ABOUT =
  'runs controllers for custom resources of a Kubernetes cluster: it watches objects, compares desired and observed state, and reconciles the difference.';

function more(program: ProgramOptions): string[] {
  const variable = environmentVariable('kube-api-qps', environmentPrefix(program));
  return [
    `Go's forms of flags work: -v=4, -v 4, -kubeconfig=FILE, and _ for -. Most flags can also be set in the environment, as in ${variable}=50, or in the --config file, as in kubeApiQps: 50. A flag has precedence over its variable, and the variable over the file. klog's legacy flags (-logtostderr, -alsologtostderr=true and others) are accepted and ignored.`,
    `"${program.name} COMMAND --help" lists the flags of a command. The guides are in the docs folder of the package crd-controller.`,
  ];
}

function exampleLines(program: string, { examples = [] }: ProgramCommand, width: number): string[] {
  if (examples.length === 0) return [];
  const lines = examples.map(
    ([line, meaning]) => `  # ${meaning}\n${continued(`  ${program} ${line}`, width)}`,
  );
  return [['Examples:', ...lines].join('\n')];
}

/** Breaks a shell command with backslashes. */
function continued(line: string, width: number): string {
  const end = line.lastIndexOf(' ', width - 2);
  const isBreakable = line.length > width && line.slice(0, end).trim() !== '';
  return isBreakable
    ? `${line.slice(0, end)} \\\n${continued(`      ${line.slice(end + 1)}`, width)}`
    : line;
}

/** Returns the table of the daemon's flags for the documentation, as Markdown. */
export function optionsTable(options: Options): string {
  const lines = ['| Flag | Default | Meaning |', '| --- | --- | --- |'];
  let group = '';
  for (const [name, option] of sortedOptions(options)) {
    if (option.hidden) continue;
    if (option.group !== group) lines.push(`| **${option.group}** | | |`);
    group = option.group;
    lines.push(tableRow(name, option));
  }
  return `${lines.join('\n')}\n`;
}

function tableRow(name: string, option: Option<unknown>): string {
  const names = [name, ...(option.aliases ?? [])].map((each) => `\`${flagNamed(each)}\``);
  const initial = option.default === '' ? '' : `\`${option.default}\``;
  return `| ${names.join(', ')} | ${initial} | ${option.help.replaceAll(/[|*]/g, String.raw`\$&`)} |`;
}
