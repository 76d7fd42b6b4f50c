import { optionsOf } from './program/command.ts';
import type { Commands } from './program/command.ts';
import { environmentPrefix } from './program/program.ts';
import type { ProgramCommand, ProgramOptions } from './program/program.ts';
import { wrapWords } from '../util/wrap-words.ts';
import { environmentVariable, flagNamed, flagParser, sortedOptions } from './flags/flag-parser.ts';
import type { Option, Options } from './flags/option.ts';

const NARROWEST = 80;
const WIDEST = 110;

/**
 * Returns the help text of `command`, which is one of `commands`. The help of the default command is also that
 * of the program and lists all commands.
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
  const sections = [
    isDefault ? description : (command.description ?? `${command.summary}.`),
    usage(name, command, isDefault),
    ...(isDefault ? [commandList(commands)] : []),
    await flagParser(optionsOf(command)).scriptName(name).wrap(width).getHelp(),
    exampleLines(name, command, width),
    ...(isDefault ? more(program) : [`"${name} --help" lists all commands.`]),
  ];
  return sections
    .filter((section) => section !== '')
    .map((section) => wrapped(section, width))
    .join('\n\n');
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

function usage(program: string, { name, operands }: ProgramCommand, isDefault: boolean): string {
  const own = [name, operands, '[flags]'].filter((word) => word !== undefined).join(' ');
  const lines = isDefault ? ['[run] [flags]', 'COMMAND [flags]'] : [own];
  return ['Usage:', ...lines.map((line) => `  ${program} ${line}`)].join('\n');
}

function commandList(commands: Commands): string {
  const longest = Math.max(...commands.map(({ name }) => name.length));
  const lines = commands.map(({ name, summary }) => `  ${name.padEnd(longest)}  ${summary}`);
  return ['Commands:', ...lines].join('\n');
}

function exampleLines(program: string, { examples = [] }: ProgramCommand, width: number): string {
  if (examples.length === 0) return '';
  const lines = examples.map(
    ([line, meaning]) => `  # ${meaning}\n${continued(`  ${program} ${line}`, width)}`,
  );
  return ['Examples:', ...lines].join('\n');
}

/** Breaks a shell command with backslashes. */
function continued(line: string, width: number): string {
  const end = line.lastIndexOf(' ', width - 2);
  const isBreakable = line.length > width && line.slice(0, end).trim() !== '';
  return isBreakable
    ? `${line.slice(0, end)} \\\n${continued(`      ${line.slice(end + 1)}`, width)}`
    : line;
}

/** Wraps a paragraph. Text with line breaks is unchanged. */
function wrapped(text: string, width: number): string {
  return text.includes('\n') ? text : wrapWords(text, width).join('\n');
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
