'use strict';
/**
 * The parts of undici that the program uses, for the bundle. The package itself also loads fetch, WebSocket,
 * caches and mocks: 300 kB of code that would run at each start.
 */
const Dispatcher = require('undici/lib/dispatcher/dispatcher.js');
Dispatcher.prototype.request = require('undici/lib/api/api-request.js');
exports.Client = require('undici/lib/dispatcher/client.js');
exports.Pool = require('undici/lib/dispatcher/pool.js');
