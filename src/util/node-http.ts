/**
 * The HTTP modules of Node.js, loaded when they are first used. They take a large part of the time of an import of this package.
 * An `import` of `node:http` also evaluates all its exports, and those for WebSockets load undici.
 */
export const nodeHttp = () => process.getBuiltinModule('node:http');
export const nodeHttps = () => process.getBuiltinModule('node:https');
export const nodeHttp2 = () => process.getBuiltinModule('node:http2');
