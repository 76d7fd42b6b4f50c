import type { Resource } from '../../api/resource.ts';
import type { Act } from './act.ts';

/** What is shown of one controller. It leaves nothing behind in its namespace. */
export interface Scene {
  /** The controller that it shows, as `--controllers` calls it. */
  readonly name: string;
  /** Kinds that have to be installed for it. */
  readonly kinds: readonly Resource[];
  /** Folder with what it begins with, and what is left to the user afterwards. */
  readonly sample: string;
  /**
   * Errors that the daemon is to log, as it should.
   * @default none
   */
  readonly complaint?: RegExp;
  /** @throws {NotSo} at the first claim that is not so: what comes after builds on it */
  readonly play: (act: Act) => Promise<void>;
}
