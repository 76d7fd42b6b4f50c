/**
 * The controllers of the program, for use in another program, and the types of their kinds. The
 * CustomResourceDefinitions are in `crds/`.
 *
 * @experimental
 * @module
 */
export { atController } from './controllers/at/controller.ts';
export { atWebhooks } from './controllers/at/webhooks.ts';
export { countController } from './controllers/count/controller.ts';
export { fooController } from './controllers/foo/controller.ts';
export { podCountController } from './controllers/pod-count/controller.ts';
export type { PodCountControllerOptions } from './controllers/pod-count/controller.ts';
export { webAppController } from './controllers/webapp/controller.ts';
export type { WebAppControllerOptions } from './controllers/webapp/controller.ts';
export { HOOKS, TaskError } from './controllers/webapp/task.ts';
export type {
  Hook,
  HookName,
  Task,
  TaskContext,
  TaskErrorOptions,
  Wait,
} from './controllers/webapp/task.ts';
export {
  ownedObjectTask,
  rolloutTask,
  standardTasks,
} from './controllers/webapp/standard-tasks.ts';
export type { OwnedObjectTaskOptions, TaskCaches } from './controllers/webapp/standard-tasks.ts';
export { ATS } from './api/generated/at.ts';
export type { At, AtSpec, AtStatus } from './api/generated/at.ts';
export { COUNTS } from './api/generated/count.ts';
export type { Count, CountSpec, CountStatus } from './api/generated/count.ts';
export { FOOS } from './api/generated/foo.ts';
export type { Foo, FooSpec, FooStatus } from './api/generated/foo.ts';
export { WEB_APPS } from './api/generated/web-app.ts';
export type { WebApp, WebAppSpec, WebAppStatus } from './api/generated/web-app.ts';
