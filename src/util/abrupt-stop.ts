/**
 * A reason to stop that leaves nothing to finish: whoever is aborted with it drops what it does, and
 * nobody waits for it longer than that takes.
 */
export class AbruptStop extends Error {
  override readonly name: string = 'AbruptStop';
}
