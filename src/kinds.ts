/**
 * All built-in kinds of the supported releases of Kubernetes: descriptors such as `PODS`, which give informers, listers and
 * clients their types, and the types of the objects and of their parts, such as `PodSpec` and `Container`.
 *
 * A server of an older release does not serve the kinds that are newer than it. If two groups have a kind of the same name,
 * the name of one has a prefix: `EVENTS` is v1, `EVENTS_V1_EVENTS` is events.k8s.io/v1.
 *
 * @public
 * @module
 */
export * from './api/builtin.ts';
