# Workloads A and B in ns-2: NewReno flows over a dumbbell, as scenarios/bench/a.toml and b.toml.
#
# usage: ns dumbbell.tcl FLOWS RATE_MBPS QUEUE_PACKETS DURATION_S FROM_S LAST_START_S SEED
#
# Prints one line of figures: goodput, drops and means count from FROM_S to the end.
if {$argc != 7} {puts stderr "usage: ns dumbbell.tcl FLOWS RATE_MBPS QUEUE_PACKETS DURATION_S FROM_S LAST_START_S SEED"; exit 2}
lassign $argv flows rate_mbps queue_packets duration_s from_s last_start_s seed

remove-all-packet-headers
add-packet-header IP TCP Flags
set ns [new Simulator]
$ns use-scheduler Splay
$defaultRNG seed $seed

Agent/TCP set window_ 100000
Agent/TCP set windowInit_ 2
Agent/TCP set packetSize_ 1000
Agent/TCP set minrto_ 0.2
Agent/TCP set overhead_ 0.000008
set unlimited 100000

proc wire {a b rate_mbps delay_ms} {
  global ns unlimited
  $ns duplex-link $a $b ${rate_mbps}Mb ${delay_ms}ms DropTail
  $ns queue-limit $a $b $unlimited
  $ns queue-limit $b $a $unlimited
}

set r1 [$ns node]
set r2 [$ns node]
wire $r1 $r2 $rate_mbps 10
$ns queue-limit $r1 $r2 $queue_packets
set bottleneck [$ns monitor-queue $r1 $r2 ""]

for {set i 0} {$i < $flows} {incr i} {
  set source [$ns node]
  set destination [$ns node]
  wire $source $r1 1000 1
  wire $r2 $destination 1000 1
  set tcp($i) [new Agent/TCP/Newreno]
  set sink [new Agent/TCPSink]
  $ns attach-agent $source $tcp($i)
  $ns attach-agent $destination $sink
  $tcp($i) set fid_ $i
  $ns connect $tcp($i) $sink
  set ftp [$tcp($i) attach-app FTP]
  $ns at [uniform 0 $last_start_s] "$ftp start"
}

set cwnd_sum 0.0
set queue_sum 0.0
set samples 0
proc begin_window {} {
  global flows tcp acked_before bottleneck drops_before
  for {set i 0} {$i < $flows} {incr i} {set acked_before($i) [$tcp($i) set ack_]}
  set drops_before [$bottleneck set pdrops_]
  sample
}
proc sample {} {
  global ns flows tcp bottleneck cwnd_sum queue_sum samples
  for {set i 0} {$i < $flows} {incr i} {set cwnd_sum [expr {$cwnd_sum + [$tcp($i) set cwnd_]}]}
  set queue_sum [expr {$queue_sum + [$bottleneck set pkts_]}]
  incr samples
  $ns at [expr {[$ns now] + 0.1}] sample
}
proc finish {} {
  global flows tcp acked_before bottleneck drops_before cwnd_sum queue_sum samples duration_s from_s
  set sum 0.0
  set squares 0.0
  set sent 0
  for {set i 0} {$i < $flows} {incr i} {
    set acked [expr {[$tcp($i) set ack_] - $acked_before($i)}]
    set sum [expr {$sum + $acked}]
    set squares [expr {$squares + double($acked) * $acked}]
    incr sent [$tcp($i) set ndatapack_]
  }
  # Every packet sent takes the access link; every one that leaves the bottleneck takes two links more, and
  # its acknowledgement three.
  set hops [expr {$sent + 5 * [$bottleneck set pdepartures_]}]
  puts [format "goodput_mbps=%.4f drops=%d mean_cwnd=%.3f mean_queue=%.2f jain=%.4f hops=%d" \
    [expr {$sum * 8000.0 / ($duration_s - $from_s) / 1e6}] \
    [expr {[$bottleneck set pdrops_] - $drops_before}] \
    [expr {$cwnd_sum / $samples / $flows}] [expr {$queue_sum / $samples}] \
    [expr {$sum * $sum / ($flows * $squares)}] $hops]
  exit 0
}
$ns at $from_s begin_window
$ns at $duration_s finish
$ns run
