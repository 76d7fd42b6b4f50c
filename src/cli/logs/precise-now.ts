/**
 * Wall-clock time with microseconds. The high-resolution clock stands still while a machine
 * sleeps and does not follow NTP, so it is set anew whenever it strays from the wall clock.
 */
export function preciseNow(
  wall: () => number = Date.now,
  monotonic: () => number = () => performance.now(),
): () => number {
  let origin = wall() - monotonic();
  return () => {
    const now = wall();
    if (Math.abs(origin + monotonic() - now) > 2) origin = now - monotonic();
    return origin + monotonic();
  };
}
