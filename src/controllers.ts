/**
 * The controllers of the daemon, for a program of one's own: beside other controllers, or, of
 * WebApps, with other tasks. Their kinds have to be installed, from `crds/`.
 *
 * @module
 */
export type {
  ControllerFactory,
  ControllerFactoryDeps,
  ControllerFactoryOptions,
} from './controllers/controller-factory.ts';
export { atController } from './controllers/at/controller.ts';
export { countController } from './controllers/count/controller.ts';
export { fooController } from './controllers/foo/controller.ts';
export { podCountController } from './controllers/pod-count/controller.ts';
export {
  standardTasks,
  webAppController,
  webAppControllerWith,
} from './controllers/webapp/controller.ts';
export type { TaskCaches } from './controllers/webapp/controller.ts';
export { HOOKS, TaskError } from './controllers/webapp/task.ts';
export type {
  Hook,
  HookName,
  Task,
  TaskContext,
  TaskErrorOptions,
  Wait,
} from './controllers/webapp/task.ts';
export { childTask } from './controllers/webapp/tasks/child-task.ts';
export type { ChildTaskOptions } from './controllers/webapp/tasks/child-task.ts';
export { rolloutTask } from './controllers/webapp/tasks/rollout-task.ts';
export { ATS } from './api/generated/at.ts';
export type { At, AtSpec, AtStatus } from './api/generated/at.ts';
export { COUNTS } from './api/generated/count.ts';
export type { Count, CountSpec, CountStatus } from './api/generated/count.ts';
export { FOOS } from './api/generated/foo.ts';
export type { Foo, FooSpec, FooStatus } from './api/generated/foo.ts';
export { WEB_APPS } from './api/generated/web-app.ts';
export type { WebApp, WebAppSpec, WebAppStatus } from './api/generated/web-app.ts';
