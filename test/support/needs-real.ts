/** Why a story is skipped where there is no real kube-apiserver; false where there is. */
export function needsReal(what: string): string | false {
  return (
    process.env['CONTROL_PLANE'] !== 'real' &&
    `SKIPPED: needs CONTROL_PLANE=real, ${what}: npm run test:real`
  );
}
