/** Formats a duration by its two largest units: `12ms`, `1.5s`, `3m 4s`, `2h 5m`. */
export function duration(ms: number | undefined): string {
  if (ms === undefined || !Number.isFinite(ms)) return '–';
  if (ms < 1) return ms <= 0 ? '0ms' : '<1ms';
  if (ms < 1000) return `${Math.round(ms)}ms`;
  if (ms < 10_000) return `${(ms / 1000).toFixed(1)}s`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 60) return `${seconds}s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)}m ${seconds % 60}s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 24 * 60) return `${Math.floor(minutes / 60)}h ${minutes % 60}m`;
  return `${Math.floor(minutes / 60 / 24)}d ${Math.floor(minutes / 60) % 24}h`;
}

/** Formats bytes as mebibytes. */
export function mebibytes(bytes: number | undefined): string {
  return bytes === undefined ? '–' : `${Math.round(bytes / 2 ** 20)} MiB`;
}

/** Formats a rate with at most two decimals. */
export function rate(perSecond: number | undefined): string {
  if (perSecond === undefined) return '–';
  if (perSecond === 0 || perSecond >= 100) return String(Math.round(perSecond));
  return perSecond < 0.005 ? '<0.01' : perSecond.toFixed(perSecond < 10 ? 2 : 1);
}

/** Formats a share of 1: `12 %`. */
export function percent(share: number | undefined): string {
  return share === undefined ? '–' : `${Math.round(100 * share)} %`;
}

/** Formats an amount with its noun: `1 key`, `3 keys`. */
export function counted(amount: number, noun: string): string {
  return `${amount} ${noun}${amount === 1 ? '' : 's'}`;
}

/** Formats a time of day with milliseconds. */
export function timeOfDay(rfc3339: string): string {
  const date = new Date(rfc3339);
  if (Number.isNaN(date.getTime())) return rfc3339;
  const two = (amount: number) => String(amount).padStart(2, '0');
  const ms = String(date.getMilliseconds()).padStart(3, '0');
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}.${ms}`;
}
