/** Formats a duration as Go does, rounded to a microsecond: `5ms`, `1.28s`, `5m0s`, `26h0m0s`. */
export function formatDuration(ms: number): string {
  const sign = ms < 0 ? '-' : '';
  const micros = Math.round(Math.abs(ms) * 1000);
  if (micros === 0) return '0s';
  if (micros < 1000) return `${sign}${micros}µs`;
  if (micros < 1_000_000) return `${sign}${micros / 1000}ms`;
  const hours = Math.floor(micros / 3_600_000_000);
  const minutes = Math.floor(micros / 60_000_000) % 60;
  const seconds = `${(micros % 60_000_000) / 1_000_000}s`;
  if (hours > 0) return `${sign}${hours}h${minutes}m${seconds}`;
  return minutes > 0 ? `${sign}${minutes}m${seconds}` : `${sign}${seconds}`;
}

/** Formats a duration as Go does, rounded to a second: `0s`, `2s`, `5m0s`. */
export function formatSeconds(ms: number): string {
  return formatDuration(1000 * Math.round(ms / 1000));
}
