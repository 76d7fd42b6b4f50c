import type { RequestNotes } from '../request/received-request.ts';
import type { ResourceDefinition, StoredObject } from '../objects/resource-definition.ts';
import type { User } from '../../api/user.ts';

export type AdmittedOperation = 'CONNECT' | 'CREATE' | 'DELETE' | 'UPDATE';

/** A write, as admission sees it. Upstream: `admission.Attributes`. */
export interface Attributes extends RequestNotes {
  readonly operation: AdmittedOperation;
  /** Definition of the resource in the path. */
  readonly definition: ResourceDefinition;
  /** Empty for the resource itself. */
  readonly subresource: string;
  /** Group, version and kind of the object; of a subresource it can differ from the resource's. */
  readonly kind: Pick<ResourceDefinition, 'group' | 'version' | 'kind'>;
  /** Empty for cluster-scoped objects. The namespace of a Namespace is its own name. */
  readonly namespace: string;
  /** Empty if the server generates it. */
  readonly name: string;
  /** Absent for DELETE. */
  readonly object: StoredObject | undefined;
  /** Absent for CREATE. */
  readonly oldObject: StoredObject | undefined;
  readonly user: User;
  readonly dryRun: boolean;
  /** CreateOptions, UpdateOptions or DeleteOptions. */
  readonly options: object;
  /** Aborts when the client gives up. */
  readonly signal: AbortSignal | undefined;
}

/** Admission by configuration. */
export interface AdmissionChain {
  /** Whether any configuration can change objects of a resource. */
  mutates(definition: ResourceDefinition): boolean;
  /** Whether any configuration can reject writes of a resource. */
  validates(definition: ResourceDefinition): boolean;
  /**
   * Returns the object with the changes of mutating admission; the same value if there are none.
   *
   * @throws {StatusError} if a webhook or policy rejects the write
   */
  mutate(attributes: Attributes): Promise<StoredObject | undefined>;
  /** @throws {StatusError} if a webhook or policy rejects the write */
  validate(attributes: Attributes): Promise<void>;
  /** Runs the whole chain for a write without an object of its own kind, such as a deletion. */
  admit(attributes: Attributes): Promise<void>;
}
