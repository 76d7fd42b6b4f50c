/** Headers in the dictionary of SPDY's compression, each after its length. */
const NAMES =
  'options, head, post, put, delete, trace, accept, accept-charset, accept-encoding, ' +
  'accept-language, accept-ranges, age, allow, authorization, cache-control, connection, ' +
  'content-base, content-encoding, content-language, content-length, content-location, ' +
  'content-md5, content-range, content-type, date, etag, expect, expires, from, host, ' +
  'if-match, if-modified-since, if-none-match, if-range, if-unmodified-since, ' +
  'last-modified, location, max-forwards, pragma, proxy-authenticate, proxy-authorization, ' +
  'range, referer, retry-after, server, te, trailer, transfer-encoding, upgrade, ' +
  'user-agent, vary, via, warning, www-authenticate, method, get, status, 200 OK, version, ' +
  'HTTP/1.1, url, public, set-cookie, keep-alive, origin';

/** Text at the end of the dictionary. */
const TAIL =
  '1001012012022052063003023033043053063074024054064074084094104114124134144154164175025045' +
  '05203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401' +
  ' Unauthorized403 Forbidden404 Not Found500 Internal Server Error501 Not Implemented503 S' +
  'ervice UnavailableJan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, We' +
  'd, Thu, Fri, Sat, Sun, GMTchunked,text/html,image/png,image/jpg,image/gif,application/xm' +
  'l,application/xhtml+xml,text/plain,text/javascript,publicprivatemax-age=gzip,deflate,sdc' +
  'hcharset=utf-8charset=iso-8859-1,utf-,*,enq=0.';

/** Dictionary of the compression of headers, from section 2.6.10.1 of the SPDY/3.1 protocol. */
export function spdyDictionary(): Buffer {
  const parts = NAMES.split(', ').flatMap((name) => {
    const length = Buffer.alloc(4);
    length.writeUInt32BE(name.length);
    return [length, Buffer.from(name)];
  });
  return Buffer.concat([...parts, Buffer.from(TAIL)]);
}
