// A storage node for tests: TiKV's protocol and Raft replication, by unistore, which TiKV's authors wrote in Go.
//
// It differs from unistore's own program in four ways:
//   - It listens on one address, so that it can stay on this machine.
//   - It bridges the differences between this store and TiKV (see bridge).
//   - Two faults of its modules are mended, by which snapshots lost entries (`mend` in cluster.sh, mended/earlier_versions.go).
//   - `store split PD KEY…` splits regions at exact keys (hexadecimal), so that tests cross regions and nodes.
package main

import (
	"context"
	"encoding/hex"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/ngaut/unistore/config"
	"github.com/ngaut/unistore/pd"
	"github.com/ngaut/unistore/server"
	"github.com/pingcap/kvproto/pkg/deadlock"
	"github.com/pingcap/kvproto/pkg/kvrpcpb"
	"github.com/pingcap/kvproto/pkg/tikvpb"
	"github.com/pingcap/log"
	"github.com/pingcap/tidb/util/codec"
	placement "github.com/tikv/pd/client"
	"github.com/zhangjinpeng1987/raft"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"
)

type raftLogger struct{ *zap.SugaredLogger }

func (logger raftLogger) Warning(words ...interface{}) { logger.Warn(words...) }

func (logger raftLogger) Warningf(format string, words ...interface{}) {
	logger.Warnf(format, words...)
}

// splitAt asks the leader of a key's region to begin a new region there.
func splitAt(drivers placement.Client, key []byte) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	encoded := codec.EncodeBytes(nil, key)
	region, err := drivers.GetRegion(ctx, encoded)
	if err != nil {
		return err
	}
	if region == nil || region.Meta == nil || region.Leader == nil {
		return fmt.Errorf("the region has no leader yet")
	}
	if string(region.Meta.StartKey) == string(encoded) {
		return nil
	}
	node, err := drivers.GetStore(ctx, region.Leader.StoreId)
	if err != nil {
		return err
	}
	connection, err := grpc.DialContext(ctx, node.Address, grpc.WithInsecure(), grpc.WithBlock())
	if err != nil {
		return err
	}
	defer connection.Close()
	answer, err := tikvpb.NewTikvClient(connection).SplitRegion(ctx, &kvrpcpb.SplitRegionRequest{
		Context:   &kvrpcpb.Context{RegionId: region.Meta.Id, RegionEpoch: region.Meta.RegionEpoch, Peer: region.Leader},
		SplitKeys: [][]byte{key}, SplitKey: key,
	})
	if err == nil && answer.RegionError != nil {
		err = fmt.Errorf("%v", answer.RegionError)
	}
	return err
}

func split(addresses string, keys []string) error {
	drivers, err := placement.NewClient(strings.Split(addresses, ","), placement.SecurityOption{})
	if err != nil {
		return err
	}
	for _, text := range keys {
		key, err := hex.DecodeString(text)
		if err != nil {
			return err
		}
		for try := 0; ; try++ {
			if err = splitAt(drivers, key); err == nil {
				break
			}
			if try == 40 {
				return fmt.Errorf("%s: %v", text, err)
			}
			time.Sleep(250 * time.Millisecond)
		}
	}
	return nil
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	if len(os.Args) > 3 && os.Args[1] == "split" {
		fail(split(os.Args[2], os.Args[3:]))
		return
	}
	settings := config.DefaultConf
	settings.Server.Raft = true
	settings.RaftStore.RaftBaseTickInterval = "100ms"
	// Below the time of an election.
	settings.RaftStore.RaftStoreMaxLeaderLease = "900ms"
	settings.RaftStore.PdHeartbeatTickInterval = "2s"
	settings.Engine.MaxMemTableSize = 16 << 20
	settings.Engine.VlogFileSize = 64 << 20
	flag.StringVar(&settings.Server.PDAddr, "pd", "127.0.0.1:2379", "placement drivers, host:port,…")
	flag.StringVar(&settings.Server.StoreAddr, "addr", "127.0.0.1:20160", "the address to listen on")
	flag.StringVar(&settings.Engine.DBPath, "data", "", "the folder of the data")
	flag.StringVar(&settings.Server.LogfilePath, "log", "", "the log file")
	flag.BoolVar(&settings.Engine.SyncWrite, "sync", false, "whether writes are synced")
	flag.Parse()
	if settings.Engine.DBPath == "" {
		fail(fmt.Errorf("-data is missing: name the folder of the data"))
	}
	logger, properties, err := log.InitLogger(&log.Config{Level: "info", File: log.FileLogConfig{Filename: settings.Server.LogfilePath}})
	fail(err)
	log.ReplaceGlobals(logger, properties)
	raft.SetLogger(raftLogger{logger.Sugar()})

	listener, err := net.Listen("tcp", settings.Server.StoreAddr)
	fail(err)
	drivers, err := pd.NewClient(strings.Split(settings.Server.PDAddr, ","), "")
	fail(err)
	node, err := server.New(&settings, drivers)
	fail(err)
	calls := grpc.NewServer(
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 2 * time.Second, PermitWithoutStream: true}),
		grpc.MaxRecvMsgSize(64<<20),
		grpc.UnaryInterceptor((&bridge{node: node, underWay: newMemoryLocks(), tables: filepath.Join(settings.Engine.DBPath, "kv")}).intercept),
	)
	tikvpb.RegisterTikvServer(calls, node)
	deadlock.RegisterDeadlockServer(calls, node)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	go func() { <-signals; calls.Stop() }()
	fail(calls.Serve(listener))
	node.Stop()
}
