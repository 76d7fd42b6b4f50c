/**
 * Module `node:http`. An `import` of it evaluates all its exports, and those for WebSockets load undici, which takes
 * longer than all other modules of a server together.
 */
export const { createServer, request, ServerResponse } = process.getBuiltinModule('node:http');
