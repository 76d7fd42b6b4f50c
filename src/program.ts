/**
 * A program with the command line of `crd-controller`: flags, environment, configuration file, logs, leader
 * election, metrics, probes, debug pages, dry run and single pass.
 *
 * @experimental
 * @module
 */
export { runProgram } from './cli/command-line.ts';
export { runOnCluster, runOnEmbeddedCluster } from './cli/develop/develop.ts';
export type { RunOnClusterOptions } from './cli/develop/cluster-run.ts';
export type { RunOnEmbeddedClusterOptions } from './cli/develop/embedded-run.ts';
export { flagValues, programCommand } from './cli/program/program.ts';
export type {
  CommandContext,
  ControllerBuilder,
  Flags,
  FlagValues,
  ProgramCommand,
  ProgramController,
  ProgramOptions,
  WebhooksBuilder,
} from './cli/program/program.ts';
export {
  bindAddressOption,
  booleanOption,
  choiceOption,
  choicesOption,
  durationOption,
  hostOption,
  integerOption,
  labelSelectorOption,
  listOption,
  textOption,
} from './cli/flags/option.ts';
export type { Completion, UngroupedOption } from './cli/flags/option.ts';
export { UsageError } from './cli/common/errors.ts';
