/** Something that can be changed while the process runs. */
export interface Setting {
  /** What answers call it: `klog.logging.verbosity`. */
  readonly name: string;
  /** Returns the current value. */
  readonly get: () => string;
  /** @throws {RangeError} saying what is wrong with the text */
  readonly set: (text: string) => void;
}

/** Settings by their paths. */
export type Settings = ReadonlyMap<string, Setting>;

/** In bytes. */
export const LONGEST_SETTING: number = 1024;

/** A change of a setting, answered as kube components do. */
export function settingAnswer(
  { name, set }: Setting,
  text: string,
): { readonly status: number; readonly body: string } {
  try {
    set(text);
    return { status: 200, body: `successfully set ${name} to ${text}` };
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    return { status: 400, body: `failed set ${name} ${text}: ${error.message}` };
  }
}
