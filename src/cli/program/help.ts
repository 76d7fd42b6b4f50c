import { environmentPrefix } from './program.ts';
import type { ProgramCommand, ProgramOptions } from './program.ts';
import { environmentVariable } from '../flags/flag-parser.ts';
import type { CommandSyntax } from '../flags/flag-parser.ts';

const NARROWEST = 80;
const WIDEST = 110;
/** Margins of an example, and its backslash. */
const MARGIN = 6;

/**
 * Returns the syntax of a command, with the texts of its help. The help of the default command is also that of the
 * program.
 *
 * @param width columns of the terminal that the help uses
 */
export function commandSyntax(
  program: ProgramOptions,
  command: ProgramCommand,
  isDefault: boolean,
  width: number,
): CommandSyntax {
  const { name, description = `${name} ${ABOUT}` } = program;
  const about = isDefault ? description : (command.description ?? `${command.summary}.`);
  const own = [command.name, command.operands, '[flags]'].filter((word) => word !== undefined);
  const forms = isDefault ? ['[run] [flags]', 'COMMAND [flags]'] : [own.join(' ')];
  const usages = forms.map((form) => `Usage: ${name} ${form}`).join('\n');
  return {
    name: command.name,
    summary: command.summary,
    usage: `${about}\n\n${usages}`,
    // yargs breaks long words, so that a command could not be copied.
    examples: (command.examples ?? []).map(
      ([line, meaning]) => `# ${meaning}\n${continued(`${name} ${line}`, width)}`,
    ),
    end: isDefault ? more(program) : `"${name} --help" lists all commands.`,
  };
}

/** Returns the columns that the help uses, in a terminal of `columns`. */
export function helpWidth(columns: number = NARROWEST): number {
  return Math.max(NARROWEST, Math.min(WIDEST, columns));
}

const ABOUT =
  'runs controllers for custom resources of a Kubernetes cluster: it watches objects, compares desired and observed state, and reconciles the difference.';

function more(program: ProgramOptions): string {
  const variable = environmentVariable('kube-api-qps', environmentPrefix(program));
  return [
    `Go's forms of flags work: -v=4, -v 4, -kubeconfig=FILE, and _ for -. Most flags can also be set in the environment, as in ${variable}=50, or in the --config file, as in kubeApiQps: 50. A flag has precedence over its variable, and the variable over the file. klog's legacy flags (-logtostderr, -alsologtostderr=true and others) are accepted and ignored.`,
    `"${program.name} COMMAND --help" lists the flags of a command. The guides are in the docs folder of the package crd-controller.`,
  ].join('\n\n');
}

/** Breaks a shell command with backslashes. */
function continued(line: string, width: number): string {
  const end = line.lastIndexOf(' ', width - MARGIN);
  const isBreakable = line.length > width - MARGIN && line.slice(0, end).trim() !== '';
  return isBreakable
    ? `${line.slice(0, end)} \\\n${continued(`    ${line.slice(end + 1)}`, width)}`
    : line;
}
