/** What a client may make of a row at a glance: kubectl leaves out Pods that are through. */
export interface TableRowCondition {
  readonly type: 'Completed';
  readonly status: 'True';
  readonly reason: string;
  readonly message: string;
}
