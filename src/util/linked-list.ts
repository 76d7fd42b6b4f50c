/** Links of an element, which is in at most one list. Undefined while it is in none. */
export interface Linked<T> {
  previous: T | undefined;
  next: T | undefined;
}

/** A doubly linked list of elements that contain their links. Every operation costs O(1). */
export class LinkedList<T extends Linked<T>> {
  #first: T | undefined;
  #last: T | undefined;

  get first(): T | undefined {
    return this.#first;
  }

  /** @param element in no list */
  append(element: T): void {
    const last = this.#last;
    this.#last = element;
    if (last) {
      last.next = element;
      element.previous = last;
    } else {
      this.#first = element;
    }
  }

  /** @param element in this list */
  remove(element: T): void {
    const { previous, next } = element;
    if (previous) previous.next = next;
    else this.#first = next;
    if (next) next.previous = previous;
    else this.#last = previous;
    element.previous = undefined;
    element.next = undefined;
  }

  *[Symbol.iterator](): IterableIterator<T> {
    for (let element = this.#first; element; element = element.next) yield element;
  }
}
