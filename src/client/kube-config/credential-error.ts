import { ApiError } from '../../api/api-error.ts';

/** No credentials could be had, so no request was sent. `cause` must carry nothing secret. */
export function credentialError(happened: string, cause: unknown, nextStep: string): ApiError {
  const why = cause instanceof Error ? `: ${cause.message}` : '';
  return new ApiError({ kind: 'unauthorized', message: `${happened}${why}. ${nextStep}`, cause });
}
