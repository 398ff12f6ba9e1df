package main

import (
	"bytes"
	"context"
	"sync"

	"github.com/pingcap/kvproto/pkg/kvrpcpb"
)

// memoryLocks holds the keys of asynchronous and one-phase commits from before their timestamp is chosen until they are
// applied, as TiKV does. This store lacks that (mvcc.go, prewriteOptimistic, says so): it asks the placement driver for the
// timestamp of such a commit, and applies it some milliseconds later. A reader that begins in between has a later timestamp,
// finds neither lock nor value, and does not see the commit that is in its snapshot.
//
// A reader waits for the keys that are held when it arrives. Whoever holds keys later has a later timestamp.
type memoryLocks struct {
	mutex sync.Mutex
	held  map[*heldKeys]struct{}
}

type heldKeys struct {
	keys     [][]byte
	released chan struct{}
}

func newMemoryLocks() *memoryLocks {
	return &memoryLocks{held: map[*heldKeys]struct{}{}}
}

// hold keeps the keys of a commit until the function that it gives is called.
func (locks *memoryLocks) hold(mutations []*kvrpcpb.Mutation) func() {
	holder := &heldKeys{released: make(chan struct{})}
	for _, mutation := range mutations {
		holder.keys = append(holder.keys, mutation.Key)
	}
	locks.mutex.Lock()
	locks.held[holder] = struct{}{}
	locks.mutex.Unlock()
	return func() {
		locks.mutex.Lock()
		delete(locks.held, holder)
		locks.mutex.Unlock()
		close(holder.released)
	}
}

// await waits until no key is held that a reader asks for, or its call ends.
func (locks *memoryLocks) await(ctx context.Context, isRead func(key []byte) bool) error {
	for _, holder := range locks.of(isRead) {
		select {
		case <-holder.released:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func (locks *memoryLocks) of(isRead func(key []byte) bool) []*heldKeys {
	locks.mutex.Lock()
	defer locks.mutex.Unlock()
	var found []*heldKeys
	for holder := range locks.held {
		for _, key := range holder.keys {
			if isRead(key) {
				found = append(found, holder)
				break
			}
		}
	}
	return found
}

// readKeys tells which keys a request reads; nil for a request that is no read.
func readKeys(request interface{}) func(key []byte) bool {
	switch read := request.(type) {
	case *kvrpcpb.GetRequest:
		return func(key []byte) bool { return bytes.Equal(key, read.Key) }
	case *kvrpcpb.BatchGetRequest:
		return func(key []byte) bool {
			for _, wanted := range read.Keys {
				if bytes.Equal(key, wanted) {
					return true
				}
			}
			return false
		}
	case *kvrpcpb.ScanRequest:
		lower, upper := read.StartKey, read.EndKey
		if read.Reverse {
			lower, upper = upper, lower
		}
		return func(key []byte) bool {
			return bytes.Compare(key, lower) >= 0 && (len(upper) == 0 || bytes.Compare(key, upper) < 0)
		}
	}
	return nil
}
