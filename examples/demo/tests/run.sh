# Every check on a line; fails if one does.
failed=0
check() {
    got=$(sh till.sh "$1" "$2")
    if [ "$got" = "$3" ]; then
        echo "ok    $2 pieces at $1 cents are $3"
    else
        echo "FAIL  $2 pieces at $1 cents should be $3, not $got"
        failed=1
    fi
}
check 250 1 250
check 250 9 2250
check 250 10 2250
check 250 11 2475
exit "$failed"
