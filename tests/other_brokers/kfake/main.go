// Runs kfake, the broker inside franz-go, until its standard input ends. Prints its addresses.
package main

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kfake"
)

func main() {
	brokers, err := strconv.Atoi(os.Args[1])
	if err != nil {
		panic(err)
	}
	cluster, err := kfake.NewCluster(
		kfake.NumBrokers(brokers),
		kfake.DefaultNumPartitions(3),
		kfake.AllowAutoTopicCreation(),
	)
	if err != nil {
		panic(err)
	}
	defer cluster.Close()
	fmt.Println(strings.Join(cluster.ListenAddrs(), ","))
	io.Copy(io.Discard, os.Stdin)
}
