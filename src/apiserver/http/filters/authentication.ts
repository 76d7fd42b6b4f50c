import type { Authenticator, User } from '../../../api/user.ts';
import { ADMIN, ANONYMOUS } from '../../../api/user.ts';
import { DEFAULT_AUDIENCES } from '../../auth/service-account-tokens.ts';
import { unauthorized } from '../../objects/status-error.ts';
import { protocolToken } from '../websocket-request.ts';
import type { Filter, FilteredRequest } from './filter.ts';

/**
 * Finds the user who sends the request: the one of the client certificate, or else of the token. Without both, that is
 * the anonymous user. If requests need no credentials, it is the administrator, also with an unknown token. Rejects a
 * request with 401 if its token is unknown, or if its certificate is not valid and it has no token.
 */
export function withAuthentication(authenticator: Authenticator): Filter {
  return (filtered, next) => {
    const user = senderOf(filtered, authenticator);
    filtered.record.user = user;
    filtered.audit?.received(user);
    return next({ ...filtered, user });
  };
}

/**
 * Returns the user who sends a request.
 *
 * @throws {StatusError} 401
 */
export function senderOf(
  { request: { headers, certifiedUser }, authenticate }: FilteredRequest,
  authenticator: Authenticator,
): User {
  const certified = certifiedUser?.();
  if (certified) return certified;
  const [scheme = '', bearer = ''] = (headers['authorization'] ?? '').split(' ');
  const token = scheme.toLowerCase() === 'bearer' ? bearer : (protocolToken(headers) ?? '');
  if (token === '' && certifiedUser) throw unauthorized();
  if (token === '') return authenticate ? ANONYMOUS : ADMIN;
  const result = authenticator.authenticate(token, DEFAULT_AUDIENCES);
  if (typeof result === 'object') return result.user;
  if (authenticate) throw unauthorized();
  return ADMIN;
}
