const SECOND_MS = 1000;

/**
 * A duration as Kubernetes prints ages: two or three significant figures, `45s`, `2m10s`, `3h5m`,
 * `2d`, `1y30d`. Clocks differ, so up to a second in the future is `0s`; more is `<invalid>`.
 */
export function humanDuration(ms: number): string {
  const seconds = Math.trunc(ms / SECOND_MS);
  if (seconds < -1) return '<invalid>';
  if (seconds < 0) return '0s';
  if (seconds < 2 * 60) return `${seconds}s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 10) return pair(minutes, 'm', seconds % 60, 's');
  if (minutes < 3 * 60) return `${minutes}m`;
  const hours = Math.floor(minutes / 60);
  if (hours < 8) return pair(hours, 'h', minutes % 60, 'm');
  if (hours < 48) return `${hours}h`;
  const days = Math.floor(hours / 24);
  if (days < 8) return pair(days, 'd', hours % 24, 'h');
  if (days < 2 * 365) return `${days}d`;
  const years = Math.floor(days / 365);
  return years < 8 ? pair(years, 'y', days % 365, 'd') : `${years}y`;
}

/** Age of an RFC 3339 `timestamp`, `<unknown>` if there is none, `<invalid>` if it is something else. */
export function ageOf(timestamp: string | null | undefined, nowMs: number): string {
  if (!timestamp) return '<unknown>';
  if (!RFC_3339.test(timestamp)) return '<invalid>';
  const thenMs = Date.parse(timestamp);
  return Number.isNaN(thenMs) ? '<invalid>' : humanDuration(nowMs - thenMs);
}

const RFC_3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)$/;

function pair(whole: number, unit: string, rest: number, restUnit: string): string {
  return rest === 0 ? `${whole}${unit}` : `${whole}${unit}${rest}${restUnit}`;
}
