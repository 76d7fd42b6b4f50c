import type { HttpRequest, HttpResponse } from '../../../util/http.ts';
import type { Backend } from '../../operations/call.ts';
import type { RenderedAnswer } from '../../operations/router.ts';
import { answerCall } from '../../operations/router.ts';
import { PROTOBUF_TYPE } from '../../protobuf/protobuf-body.ts';
import { JSON_TYPE } from '../../request/negotiation.ts';
import type { OpenStreams } from '../open-streams.ts';
import { listResponse, objectResponse, prettyPrint } from '../response-encoding.ts';
import type { Compression, ServedResponse } from '../response.ts';
import { emptyResponse, streamResponse } from '../response.ts';
import type { Filter, FilteredRequest } from './filter.ts';

const SWITCHING_PROTOCOLS = 101;

/**
 * Runs the operation of a request to a resource, and encodes its answer.
 *
 * @param compression undefined: nothing is compressed
 */
export function withResources(
  backend: Backend,
  streams: OpenStreams,
  compression: Compression | undefined,
): Filter {
  return async (filtered, next) => {
    const { request, target, user, notes, audit } = filtered;
    const { info } = filtered.record;
    const isServed = info && target.segments[0] !== '';
    const answered = isServed && (await answerCall(backend, request, user, info, notes));
    if (!answered) return next(filtered);
    if (answered.answer.kind === 'json') audit?.answered(answered.answer.value);
    return responseOf(answered, filtered, streams, compression);
  };
}

function responseOf(
  { answer, encoding }: RenderedAnswer,
  filtered: FilteredRequest,
  streams: OpenStreams,
  compression: Compression | undefined,
): ServedResponse | Promise<ServedResponse> {
  const { warnings } = filtered.notes;
  const request: HttpRequest = filtered.request;
  const compressed = (response: HttpResponse) =>
    compression?.response(response, request) ?? response;
  switch (answer.kind) {
    case 'json': {
      const response = objectResponse(answer.code, answer.value, encoding, warnings);
      return compressed(prettyPrint(response, request));
    }
    case 'list': {
      const response = listResponse(answer.rendering, answer.state, warnings);
      return compressed(prettyPrint(response, request));
    }
    case 'watch': {
      const onEnd = filtered.end.startWatch();
      const type = encoding === 'protobuf' ? `${PROTOBUF_TYPE};stream=watch` : JSON_TYPE;
      const body = streams.body(answer.watcher, request.signal, onEnd);
      const response = streamResponse(body, type, warnings);
      filtered.audit?.started(response.status);
      return {
        ...((answer.isList && compression?.watch(response, request)) || response),
        messages: encoding === 'protobuf' ? 'frames' : 'lines',
      };
    }
    case 'text':
      return { ...streamResponse(answer.body, 'text/plain'), messages: 'bytes' };
    case 'connection': {
      const onEnd = filtered.end.startWatch();
      filtered.audit?.started(SWITCHING_PROTOCOLS);
      const connection = { connection: answer.connection, onEnd };
      return { ...emptyResponse(), status: SWITCHING_PROTOCOLS, connection };
    }
    case 'proxied':
      return answer.response;
    case 'nothing':
      return emptyResponse();
  }
}
